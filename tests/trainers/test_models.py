import json

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Qwen3MoeForCausalLM

from tests.trainers.tiny import tiny_moe
from trainers.configs import GRPOConfig, SFTConfig
from trainers.errors import ConfigurationError
from trainers.exports import publish, save_model
from trainers.models import check_positions, compare_states, load_folder, load_policy, moe_loss, moe_options
from trainers.tokenizer import load_tokenizer

TOKENIZER = load_tokenizer(SFTConfig())


def small(**changes):
    return SFTConfig(
        **{
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "from_weight": "none",
            "save_dir": "runs/out",
            **changes,
        }
    )


def same_weights(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize(("use_moe", "kind"), [(False, "qwen3"), (True, "qwen3_moe")])
def test_a_fresh_model_has_the_layout_of_minimind_3(use_moe, kind):
    config = load_policy(small(use_moe=use_moe), TOKENIZER).config
    assert config.model_type == kind
    assert config.vocab_size == len(TOKENIZER)
    assert (config.hidden_size, config.num_hidden_layers, config.head_dim, config.num_key_value_heads) == (32, 2, 8, 2)
    assert config.intermediate_size == 128  # 32 * pi = 100.5, rounded up to a multiple of 64
    assert config.rope_parameters["rope_theta"] == 1e6
    assert config.tie_word_embeddings
    assert config.max_position_embeddings >= 32_768


@pytest.mark.parametrize("use_moe", [False, True])
def test_published_weights_are_found_by_the_scripts_rule_and_are_the_same_in_fp16(home, use_moe):
    model = load_policy(small(use_moe=use_moe), TOKENIZER)
    name = "full_sft_32_moe.pth" if use_moe else "full_sft_32.pth"
    assert publish(model, small(use_moe=use_moe, save_weight="full_sft")) == f"runs/out/{name}"
    rounded = {key: value.half().float() for key, value in model.state_dict().items()}
    grpo = GRPOConfig(hidden_size=32, num_hidden_layers=2, reasoning=False, save_dir="runs/out", use_moe=use_moe)
    for config in (small(from_weight="full_sft", use_moe=use_moe, num_attention_heads=8), grpo):
        assert same_weights(load_policy(config, TOKENIZER).state_dict(), rounded)
    assert [path.name for path in (home / "runs" / "out").iterdir()] == [name], "no temporary file is left"


def test_published_experts_stand_one_by_one_as_in_the_scripts(home):
    publish(load_policy(small(use_moe=True), TOKENIZER), small(use_moe=True))
    keys = torch.load(home / "runs" / "out" / "full_sft_32_moe.pth", weights_only=True)
    assert keys["model.layers.1.mlp.experts.3.gate_proj.weight"].shape == (128, 32)
    assert keys["model.layers.1.mlp.experts.3.gate_proj.weight"].dtype == torch.float16
    assert "model.layers.1.mlp.experts.gate_up_proj" not in keys
    assert torch.equal(keys["lm_head.weight"], keys["model.embed_tokens.weight"])


@pytest.mark.parametrize("use_moe", [False, True])
def test_a_saved_folder_loads_bit_for_bit_with_its_tokenizer(home, use_moe):
    model = load_policy(small(use_moe=use_moe), TOKENIZER)
    save_model(model, TOKENIZER, home / "runs" / "model")
    save_model(model, TOKENIZER, home / "runs" / "model")  # replaces
    again = load_policy(small(init_path="runs/model"), load_tokenizer(small(init_path="runs/model")))
    assert same_weights(again.state_dict(), model.state_dict())
    assert sorted(path.name for path in (home / "runs").iterdir()) == ["data.jsonl", "model"]


def test_any_causal_model_folder_can_be_the_start_but_is_not_published(home):
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(TOKENIZER), n_embd=32, n_layer=1, n_head=2, n_positions=64))
    save_model(model, TOKENIZER, home / "runs" / "gpt2")
    loaded = load_policy(small(init_path="runs/gpt2"), TOKENIZER)
    assert same_weights(loaded.state_dict(), model.state_dict())
    assert publish(loaded, small()) is None


def test_missing_weights_name_the_file_and_the_ways_out(home):
    with pytest.raises(ConfigurationError) as refused:
        load_policy(small(from_weight="pretrain"), TOKENIZER)
    line = str(refused.value)
    assert str(home / "runs" / "out" / "pretrain_32.pth") in line
    assert "--init_path" in line
    assert "--from_weight none" in line
    with pytest.raises(ConfigurationError, match=r"reason_32_moe\.pth.*Start from\)$"):
        load_policy(GRPOConfig(hidden_size=32, save_dir="runs/out", use_moe=True), TOKENIZER)


def test_a_vocabulary_that_does_not_fit_names_both_sizes(home):
    model = GPT2LMHeadModel(GPT2Config(vocab_size=7, n_embd=32, n_layer=1, n_head=2))
    save_model(model, TOKENIZER, home / "runs" / "model")
    with pytest.raises(ConfigurationError, match=f"vocabulary of 7 tokens and the tokenizer one of {len(TOKENIZER)}"):
        load_policy(small(init_path="runs/model"), TOKENIZER)


def test_a_folder_with_missing_weights_is_refused_and_never_filled_with_random_ones(home):
    model = load_policy(small(), TOKENIZER)
    save_model(model, TOKENIZER, home / "runs" / "model")
    described = json.loads((home / "runs" / "model" / "config.json").read_text())
    described["num_hidden_layers"] = 3
    described["layer_types"] = ["full_attention"] * 3
    (home / "runs" / "model" / "config.json").write_text(json.dumps(described))
    with pytest.raises(ConfigurationError, match=r"missing: model\.layers\.2\."):
        load_folder(home / "runs" / "model")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.safetensors", b""),
        ("model.safetensors", b"garbage" * 9),
        ("config.json", b"{"),
        ("config.json", b"[]"),
        ("config.json", b'{"model_type": "unheard of"}'),
        ("config.json", b'{"model_type": "qwen3", "hidden_size": "big"}'),
    ],
)
def test_a_damaged_folder_is_one_line(home, name, content):
    save_model(load_policy(small(), TOKENIZER), TOKENIZER, home / "runs" / "model")
    (home / "runs" / "model" / name).write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"^no model can be loaded from ") as refused:
        load_folder(home / "runs" / "model")
    assert "\n" not in str(refused.value)


def test_rows_longer_than_the_positions_of_the_model_are_refused():
    model = GPT2LMHeadModel(GPT2Config(vocab_size=7, n_embd=8, n_layer=1, n_head=2, n_positions=64))
    check_positions(model, {"max_seq_len": 60, "max_gen_len": 4})
    with pytest.raises(ConfigurationError, match=r"^--max_seq_len 65: up to 65 tokens, .* has 64 positions; lower it$"):
        check_positions(model, {"max_seq_len": 65})


def test_a_folder_without_a_model_is_one_line(home):
    with pytest.raises(ConfigurationError, match=r"no model in .*runs: it has no config\.json"):
        load_folder(home / "runs")


def test_a_folder_that_brings_code_is_refused_until_the_operator_allows_it(home, monkeypatch):
    folder = home / "runs" / "custom"
    folder.mkdir()
    (folder / "config.json").write_text(
        json.dumps(
            {"model_type": "custom-model", "auto_map": {"AutoConfig": "code.C", "AutoModelForCausalLM": "code.M"}}
        )
    )
    (folder / "code.py").write_text("raise SystemExit('ran')")
    monkeypatch.delenv("NIGHTSHIFT_TRUST_REMOTE_CODE", raising=False)
    with pytest.raises(ConfigurationError, match="no model can be loaded"):
        load_folder(folder)


def test_more_than_three_differences_are_counted():
    many = {f"w{number}": torch.zeros(1) for number in range(5)}
    assert compare_states(many, {}) == "missing: w0, w1, w2 and 2 more"
    assert compare_states(many, many) == ""


def test_the_balancing_loss_of_experts_is_weighted_and_absent_when_dense():
    ids = torch.tensor([[5, 6, 7, 8]])
    dense, moe = load_policy(small(), TOKENIZER), load_policy(small(use_moe=True), TOKENIZER)
    assert moe_options(dense) == {}
    assert moe_loss(dense, dense(ids)) == 0.0
    with torch.no_grad():
        outputs = moe(ids, **moe_options(moe))
    assert float(moe_loss(moe, outputs)) == pytest.approx(5e-4 * float(outputs.aux_loss))
    assert 0.5 < float(outputs.aux_loss) < 5, "4 experts, one per token: 1 when they are used evenly"


@pytest.mark.parametrize("experts_per_token", [1, 2])
def test_the_balancing_loss_of_a_uniform_router_is_the_number_of_experts_per_token(experts_per_token):
    """Report 43: as in transformers and the scripts, it is not divided by top-k."""
    config = tiny_moe().config  # 4 experts, weight 0.01
    config.num_experts_per_tok = experts_per_token
    model = Qwen3MoeForCausalLM(config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("mlp.gate.weight"):
                weight.zero_()
        outputs = model(torch.tensor([[5, 6, 7, 8]]), **moe_options(model))
    assert float(moe_loss(model, outputs)) == pytest.approx(0.01 * experts_per_token)
