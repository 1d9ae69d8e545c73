"""Folders in Hugging Face format, as others write them: read whole, or refused in one line."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerFast

from tests.trainers.grpo_runs import start_model
from tests.trainers.sft_runs import run_sft
from trainers.configs import ModelSize, SFTConfig
from trainers.errors import ConfigurationError
from trainers.exports import save_model
from trainers.models import fresh_model, load_folder, load_policy
from trainers.tokenizer import load_tokenizer

TOKENIZER = load_tokenizer(SFTConfig())
SIZE = ModelSize(32, 2, False, 4, 2)


def same_weights(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


def written(home, model=None, **options):
    """Write a model in another form than ours, and return its folder."""
    folder = home / "runs" / "model"
    (model or fresh_model(SIZE, TOKENIZER)).save_pretrained(folder, **options)
    TOKENIZER.save_pretrained(folder)
    return folder


def test_weights_in_several_files_load_and_a_missing_one_is_refused(home):
    model = fresh_model(SIZE, TOKENIZER)
    folder = written(home, model, max_shard_size="40KB")
    shards = sorted(folder.glob("model-*.safetensors"))
    assert len(shards) > 1
    assert same_weights(load_folder(folder).state_dict(), model.state_dict())
    shards[-1].unlink()
    with pytest.raises(ConfigurationError, match=r"^no model can be loaded from ") as refused:
        load_folder(folder)
    assert "\n" not in str(refused.value)


def test_an_index_that_forgets_a_weight_is_refused(home):
    folder = written(home, max_shard_size="40KB")
    index = folder / "model.safetensors.index.json"
    described = json.loads(index.read_text())
    forgotten = "model.layers.1.self_attn.q_norm.weight"
    shard = folder / described["weight_map"].pop(forgotten)
    index.write_text(json.dumps(described))
    kept = {name: value for name, value in load_file(shard).items() if name != forgotten}
    save_file(kept, shard, metadata={"format": "pt"})
    with pytest.raises(ConfigurationError, match=f"missing: {forgotten}"):
        load_folder(folder)


def test_older_folders_keep_their_weights_in_one_pickle_which_runs_no_code(home):
    model = fresh_model(SIZE, TOKENIZER)
    folder = written(home, model)
    (folder / "model.safetensors").unlink()
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    assert same_weights(load_folder(folder).state_dict(), model.state_dict())

    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("ran",))

    torch.save({"model.norm.weight": Trap()}, folder / "pytorch_model.bin")
    with pytest.raises(ConfigurationError, match=r"^no model can be loaded from "):
        load_folder(folder)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda s: s.pop("model.layers.1.mlp.up_proj.weight"), r"missing: model\.layers\.1\.mlp\.up_proj\.weight"),
        (lambda s: s.update(extra=torch.zeros(1)), "unexpected: extra"),
        (lambda s: s.update({"model.norm.weight": torch.zeros(3)}), r"wrong size: .*model\.norm\.weight"),
        (lambda s: s.pop("model.embed_tokens.weight"), r"missing: .*embed_tokens"),
    ],
)
def test_a_folder_whose_weights_do_not_fit_is_one_line(home, change, line):
    folder = written(home)
    state = load_file(folder / "model.safetensors")
    change(state)
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ConfigurationError, match=line) as refused:
        load_folder(folder)
    assert "\n" not in str(refused.value)


def test_a_head_that_is_not_tied_is_not_left_random(home):
    folder = written(home)
    described = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(described | {"tie_word_embeddings": False}))
    with pytest.raises(ConfigurationError, match=r"missing: lm_head\.weight"):
        load_folder(folder)


def test_a_head_that_differs_from_the_embeddings_it_should_be_tied_to_stays_so_through_a_resume(home):
    folder = written(home)
    state = load_file(folder / "model.safetensors")
    state["lm_head.weight"] = state["model.embed_tokens.weight"] + 1
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    model = load_policy(SFTConfig(init_path="runs/model"), TOKENIZER)
    assert torch.equal(model.lm_head.weight, state["lm_head.weight"])
    model.config.save_pretrained(home / "runs" / "kept")
    resumed = load_policy(SFTConfig(), TOKENIZER, kept=home / "runs" / "kept")
    resumed.load_state_dict(model.state_dict())
    assert torch.equal(resumed.lm_head.weight, state["lm_head.weight"])
    assert torch.equal(resumed.model.embed_tokens.weight, state["model.embed_tokens.weight"])


def test_a_folder_in_half_precision_is_trained_in_fp32(home):
    model = fresh_model(SIZE, TOKENIZER).half()
    loaded = load_folder(written(home, model)).state_dict()
    assert {value.dtype for value in loaded.values()} == {torch.float32}
    assert all(torch.equal(value, model.state_dict()[key].float()) for key, value in loaded.items())


def test_names_as_the_first_gpt2_files_had_them_are_understood(home):
    """No prefix, and the causal mask among the weights."""
    model = start_model("gpt2", len(TOKENIZER))
    folder = written(home, model)
    state = {key.removeprefix("transformer."): value for key, value in load_file(folder / "model.safetensors").items()}
    state["h.0.attn.bias"] = torch.ones(1, 1, 128, 128).tril()
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    assert same_weights(load_folder(folder).state_dict(), model.state_dict())


def test_a_folder_with_its_own_words_and_template_is_trained_and_saved_with_them(home):
    """Six words, pad equal to eos, learned positions: nothing of it is ours."""
    vocabulary = {"Q": 0, "A": 1, "07+38": 2, "045": 3, "<end>": 4, "<unk>": 5}
    words = Tokenizer(WordLevel(vocabulary, unk_token="<unk>"))
    words.pre_tokenizer = WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<end>", unk_token="<unk>")
    tokenizer.chat_template = (
        "{% for m in messages %}{% if m.role == 'user' %}Q {{ m.content }} A {% else %}"
        "{{ m.content }} <end> {% endif %}{% endfor %}"
    )
    save_model(start_model("gpt2", len(tokenizer)), tokenizer, home / "runs" / "own")
    turns = [{"role": "user", "content": "07+38"}, {"role": "assistant", "content": "045"}]
    (home / "runs" / "data.jsonl").write_text(json.dumps({"conversations": turns}) + "\n")
    assert run_sft("runs/1", init_path="runs/own", max_seq_len=32, epochs=30, learning_rate=0.02) == 0
    trained = home / "runs" / "1" / "model"
    asked = load_tokenizer(SFTConfig(init_path="runs/1/model")).apply_chat_template(turns[:1], return_dict=False)
    assert asked == [0, 2, 1], "Q 07+38 A"
    with torch.no_grad():
        logits = load_folder(trained).eval()(torch.tensor([[*asked, 3]])).logits
    assert logits[0, 2:].argmax(-1).tolist() == [3, 4], "045 <end>"
