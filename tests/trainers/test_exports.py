"""What a run leaves is read by others: plain transformers, and whoever reads the scripts' weight files."""

import json
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM, Qwen3MoeForCausalLM

from tests.trainers.grpo_runs import start_model
from trainers.configs import ModelSize, SFTConfig
from trainers.exports import publish, reads_back, save_model
from trainers.models import fresh_model, load_folder, load_weights
from trainers.paths import REPOSITORY
from trainers.tokenizer import load_tokenizer
from trainers.weights import read_weights

GOLDEN = REPOSITORY / "tests" / "data" / "golden"
TOKENIZER = load_tokenizer(SFTConfig())
DENSE, EXPERTS = ModelSize(64, 2, False, 8, 4), ModelSize(64, 2, True, 8, 4)
IDS = [[5, 6, 7, 8, 9, 10]]
PLAIN = f"""
import sys, torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer
for folder in sys.argv[1:]:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    AutoTokenizer.from_pretrained(folder).apply_chat_template([{{"role": "user", "content": "?"}}])
    with torch.no_grad():
        save_file({{"logits": model(torch.tensor({IDS})).logits}}, folder + "/logits.safetensors")
assert not [name for name in sys.modules if name.split(".")[0] in ("trainers", "dataset")]
"""


def models():
    """Return a model of every layout: fresh, from the scripts' files, and a foreign architecture."""
    return {
        "fresh_dense": fresh_model(DENSE, TOKENIZER),
        "fresh_experts": fresh_model(EXPERTS, TOKENIZER),
        "minimind3_dense": load_weights(GOLDEN / "minimind3_dense_64.pth", DENSE),
        "minimind3_moe": load_weights(GOLDEN / "minimind3_moe_64_moe.pth", EXPERTS),
        "minimind2_dense": load_weights(GOLDEN / "minimind2_dense_64.pth", DENSE),
        "gpt2": start_model("gpt2", len(TOKENIZER)),
    }


def test_plain_transformers_reads_every_folder_with_equal_logits(home):
    """In a process of its own that knows none of our code."""
    saved = {home / name: model.eval() for name, model in models().items()}
    for folder, model in saved.items():
        save_model(model, TOKENIZER, folder)
    subprocess.run([sys.executable, "-I", "-c", PLAIN, *saved], cwd=home, check=True)
    for folder, model in saved.items():
        with torch.no_grad():
            assert torch.equal(load_file(folder / "logits.safetensors")["logits"], model(torch.tensor(IDS)).logits)


@pytest.mark.parametrize("name", sorted(models().keys() - {"gpt2"}))
def test_both_forms_load_back_as_the_same_model(home, name):
    model = models()[name].eval()
    size = EXPERTS if name in ("fresh_experts", "minimind3_moe") else DENSE
    save_model(model, TOKENIZER, home / "runs" / "model")
    path = home / "runs" / "out" / publish(model, SFTConfig(save_dir="runs/out")).rpartition("/")[2]
    folder, file = load_folder(home / "runs" / "model"), load_weights(path, size)
    halved = {key: value.half().float() for key, value in model.state_dict().items()}
    for loaded, expected in ((folder, model.state_dict()), (file, halved)):
        assert type(loaded) is type(model)
        assert all(torch.equal(value, expected[key]) for key, value in loaded.state_dict().items())
    with torch.no_grad():
        assert torch.equal(folder.eval()(torch.tensor(IDS)).logits, model(torch.tensor(IDS)).logits)
        model.load_state_dict(halved)
        assert torch.equal(file.eval()(torch.tensor(IDS)).logits, model(torch.tensor(IDS)).logits)


@pytest.mark.parametrize("name", ["minimind3_dense_64.pth", "minimind3_moe_64_moe.pth", "minimind2_dense_64.pth"])
def test_a_file_of_the_scripts_is_published_again_with_the_same_keys_and_values(home, name):
    model = load_weights(GOLDEN / name, EXPERTS if "moe" in name else DENSE)
    publish(model, SFTConfig(save_dir="runs/out"))
    published = torch.load(next((home / "runs" / "out").iterdir()), weights_only=True)
    original = torch.load(GOLDEN / name, weights_only=True)
    assert published.keys() == original.keys()
    assert all(torch.equal(published[key], original[key]) for key in original)
    assert {value.dtype for value in published.values()} == {torch.float16}


def test_an_untied_head_survives_both_forms(home):
    config = fresh_model(DENSE, TOKENIZER).config
    config.tie_word_embeddings = False
    model = Qwen3ForCausalLM(config)
    save_model(model, TOKENIZER, home / "runs" / "model")
    publish(model, SFTConfig(save_dir="runs/out"))
    folder = load_folder(home / "runs" / "model")
    file = load_weights(home / "runs" / "out" / "full_sft_64.pth", DENSE)
    assert torch.equal(folder.lm_head.weight, model.lm_head.weight)
    assert torch.equal(file.lm_head.weight, model.lm_head.weight.half().float())


@pytest.mark.parametrize(
    "change",
    [
        {"rms_norm_eps": 1e-5},
        {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4}},
        {"hidden_act": "gelu"},
        {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1},
    ],
)
def test_a_model_that_the_file_s_reader_would_compute_otherwise_is_not_published(home, change):
    """The keys fit, but a file says nothing of these: loading it would give other logits in silence."""
    described = fresh_model(DENSE, TOKENIZER).config.to_dict()
    described.pop("layer_types")
    model = Qwen3ForCausalLM(Qwen3Config(**(described | change)))
    assert publish(model, SFTConfig(save_dir="runs/out")) is None
    assert not (home / "runs" / "out").exists()


def test_experts_of_which_two_answer_at_once_are_not_published():
    config = fresh_model(EXPERTS, TOKENIZER).config
    config.num_experts_per_tok = 2
    assert not reads_back(Qwen3MoeForCausalLM(config))


def test_a_mixture_whose_first_layer_is_dense_is_not_published():
    config = fresh_model(EXPERTS, TOKENIZER).config
    config.mlp_only_layers = [0]
    assert not reads_back(Qwen3MoeForCausalLM(config))


def test_a_llama_of_another_rotation_is_not_published():
    config = LlamaConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=8, vocab_size=128)
    assert not reads_back(LlamaForCausalLM(config))


def test_the_folder_of_a_run_says_how_many_experts_answer(home):
    """What a weight file leaves to its reader, the folder writes down."""
    save_model(fresh_model(EXPERTS, TOKENIZER), TOKENIZER, home / "model")
    described = json.loads((home / "model" / "config.json").read_text())
    assert (described["num_experts_per_tok"], described["norm_topk_prob"]) == (1, True)
    assert (described["rms_norm_eps"], described["rope_parameters"]["rope_theta"]) == (1e-6, 1e6)


def test_what_is_published_is_what_a_reader_gets(home):
    model = fresh_model(EXPERTS, TOKENIZER)
    publish(model, SFTConfig(save_dir="runs/out"))
    read = read_weights(home / "runs" / "out" / "full_sft_64_moe.pth")
    assert read.keys() == model.state_dict().keys()
