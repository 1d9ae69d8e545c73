import json

import pytest
import torch

from trainers.configs import SFTConfig
from trainers.errors import ConfigurationError
from trainers.models import check_vocabulary, load_weights
from trainers.paths import REPOSITORY
from trainers.tokenizer import load_tokenizer
from trainers.weights import fuse_experts, read_weights, split_experts

GOLDEN = REPOSITORY / "tests" / "data" / "golden"
SIZE = SFTConfig(hidden_size=64, num_hidden_layers=2).model_size()
WITH_EXPERTS = SFTConfig(hidden_size=64, num_hidden_layers=2, use_moe=True).model_size()
FILES = [
    ("minimind3_dense", "minimind3_dense_64.pth", "Qwen3ForCausalLM"),
    ("minimind3_moe", "minimind3_moe_64_moe.pth", "Qwen3MoeForCausalLM"),
    ("minimind2_dense", "minimind2_dense_64.pth", "LlamaForCausalLM"),
]


@pytest.mark.parametrize(("name", "file", "kind"), FILES)
def test_logits_equal_those_of_minimind_itself(name, file, kind):
    golden = json.loads((GOLDEN / f"{name}.json").read_text())
    model = load_weights(GOLDEN / file, WITH_EXPERTS if "moe" in name else SIZE).eval()
    ids = torch.tensor(golden["input_ids"])
    with torch.no_grad():
        logits = model(ids).logits
    next_logps = logits.log_softmax(-1)[:, :-1].gather(-1, ids[:, 1:, None]).squeeze(-1)
    assert type(model).__name__ == kind
    torch.testing.assert_close(logits[..., :8], torch.tensor(golden["logits_first_8_of_vocabulary"]), atol=1e-5, rtol=0)
    torch.testing.assert_close(next_logps, torch.tensor(golden["log_prob_of_next_token"]), atol=1e-5, rtol=0)


@pytest.mark.parametrize(("name", "file", "kind"), FILES)
def test_splitting_what_was_fused_gives_the_file_back(name, file, kind):
    raw = torch.load(GOLDEN / file, weights_only=True)
    back = split_experts(read_weights(GOLDEN / file))
    assert back.keys() == raw.keys()
    assert all(torch.equal(back[key].half(), raw[key]) for key in raw)


def test_an_expert_without_one_projection_is_named():
    state = {f"model.layers.0.mlp.experts.0.{part}_proj.weight": torch.zeros(2, 2) for part in ("gate", "up")}
    with pytest.raises(ConfigurationError, match=r"layers.0.mlp.experts. lacks the projection \(0, 'down'\)"):
        fuse_experts(state)


def saved(tmp_path, change):
    state = torch.load(GOLDEN / "minimind3_dense_64.pth", weights_only=True)
    change(state)
    torch.save(state, tmp_path / "w_64.pth")
    return tmp_path / "w_64.pth"


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda s: s.pop("model.layers.1.self_attn.q_norm.weight"), "missing: model.layers.1.self_attn.q_norm.weight"),
        (lambda s: s.pop("lm_head.weight"), "missing: lm_head.weight"),
        (lambda s: s.update(extra=torch.zeros(1)), "unexpected: extra"),
        (lambda s: s.update({"model.norm.weight": torch.zeros(3)}), r"model.norm.weight is \[3\] instead of \[64\]"),
        (lambda s: s.pop("model.layers.0.self_attn.k_proj.weight"), r"there is no 'model\.layers\.0\..*k_proj"),
        (lambda s: s.update({"model.layers.0.mlp.shared_experts.0.up_proj.weight": torch.zeros(1)}), "not supported"),
        (lambda s: s.update(step=3), "something other than named tensors"),
        (lambda s: s.update({3: torch.zeros(1)}), "something other than named tensors"),
        (lambda s: s.update({"model.embed_tokens.weight": torch.zeros(5)}), "make no model"),
        (lambda s: s.update({"model.layers.0.self_attn.q_norm.weight": torch.zeros(7)}), "make no model"),
        (lambda s: s.update({"model.layers.0.self_attn.k_proj.weight": torch.zeros(3, 64)}), "make no model"),
    ],
)
def test_weights_that_do_not_fit_are_one_line_that_names_the_difference(tmp_path, change, line):
    with pytest.raises(ConfigurationError, match=line) as refused:
        load_weights(saved(tmp_path, change), SIZE)
    assert "\n" not in str(refused.value)


def test_another_number_of_layers_than_asked_names_both(tmp_path):
    with pytest.raises(ConfigurationError, match="has num_hidden_layers 2, but num_hidden_layers 8 was asked for"):
        load_weights(GOLDEN / "minimind3_dense_64.pth", SFTConfig(hidden_size=64).model_size())


def test_another_width_than_asked_names_both():
    with pytest.raises(ConfigurationError, match="has hidden_size 64, but hidden_size 32 was asked for"):
        load_weights(GOLDEN / "minimind3_dense_64.pth", SFTConfig(hidden_size=32, num_hidden_layers=2).model_size())


@pytest.mark.parametrize(
    ("file", "size", "line"),
    [
        ("minimind3_moe_64_moe.pth", SIZE, "holds a mixture of experts, but a dense model was asked for"),
        ("minimind3_dense_64.pth", WITH_EXPERTS, "holds a dense model, but a mixture of experts was asked for"),
        ("minimind2_dense_64.pth", WITH_EXPERTS, "holds a dense model, but a mixture of experts was asked for"),
    ],
)
def test_experts_that_were_not_asked_for_or_are_missing_name_both(file, size, line):
    with pytest.raises(ConfigurationError, match=line):
        load_weights(GOLDEN / file, size)


@pytest.mark.parametrize("name", ["minimind3_dense", "minimind2_dense"])
def test_another_vocabulary_than_the_tokenizer_s_names_both(name):
    tokenizer = load_tokenizer(SFTConfig())
    with pytest.raises(ConfigurationError, match=f"vocabulary of 128 tokens and the tokenizer one of {len(tokenizer)}"):
        check_vocabulary(load_weights(GOLDEN / f"{name}_64.pth", SIZE), tokenizer, padded=False)


def test_a_head_of_its_own_is_kept_beside_the_embeddings(tmp_path):
    """The scripts tie both; a file in which they differ must not lose one of them in silence."""
    path = saved(tmp_path, lambda state: state.update({"lm_head.weight": state["lm_head.weight"] + 1}))
    model = load_weights(path, SIZE)
    assert not model.config.tie_word_embeddings
    written = torch.load(path, weights_only=True)
    for name in ("lm_head.weight", "model.embed_tokens.weight"):
        assert torch.equal(model.state_dict()[name], written[name].float())


def test_an_expert_that_is_missing_in_between_is_named():
    state = {
        f"model.layers.0.mlp.experts.{number}.{part}_proj.weight": torch.zeros(2, 2)
        for number in (0, 2)
        for part in ("gate", "up", "down")
    }
    with pytest.raises(ConfigurationError, match=r"lacks the projection \(1, 'gate'\)"):
        fuse_experts(state)


def test_a_file_that_is_no_weight_file_is_one_line(tmp_path):
    (tmp_path / "x.pth").write_text("hello")
    with pytest.raises(ConfigurationError, match=r"x\.pth is no weight file"):
        read_weights(tmp_path / "x.pth")


def test_pickled_code_is_never_run(tmp_path):
    class Trap:
        def __reduce__(self):
            return (print, ("run",))

    torch.save({"model": Trap()}, tmp_path / "trap.pth")
    with pytest.raises(ConfigurationError, match="is no weight file"):
        read_weights(tmp_path / "trap.pth")
