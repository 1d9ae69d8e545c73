import pytest
import torch

from tests.trainers.tiny import VOCAB, tiny_gpt2, tiny_moe, tiny_qwen3
from trainers.adapters import add_adapters, fused_experts, linear_layers, scripts_adapter, trained_share
from trainers.weights import split_experts

KINDS = [tiny_qwen3, tiny_moe, tiny_gpt2]


def some_ids():
    return torch.arange(14).view(2, 7) % VOCAB


def logits_of(model):
    with torch.no_grad():
        return model.eval()(some_ids()).logits


def adapted_and_moved(make):
    """Return a model with adapters that are no longer 0, and PEFT's view of it."""
    model = make()
    adapted = add_adapters(model, rank=4, alpha=8.0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(0, 0.02)
    return model, adapted


@pytest.mark.parametrize("make", KINDS)
def test_the_first_output_is_that_of_the_base_to_the_bit(make):
    before = logits_of(make())
    model = make()
    add_adapters(model, rank=4, alpha=8.0)
    assert torch.equal(logits_of(model), before)


def test_every_linear_layer_of_attention_and_mlp_has_an_adapter_and_the_head_has_none():
    assert [name for name in linear_layers(tiny_qwen3()) if "layers.1" in name] == [
        "model.layers.1.self_attn.q_proj",
        "model.layers.1.self_attn.k_proj",
        "model.layers.1.self_attn.v_proj",
        "model.layers.1.self_attn.o_proj",
        "model.layers.1.mlp.gate_proj",
        "model.layers.1.mlp.up_proj",
        "model.layers.1.mlp.down_proj",
    ]
    assert len(linear_layers(tiny_qwen3())) == 14
    assert fused_experts(tiny_qwen3()) == []
    assert len(linear_layers(tiny_gpt2())) == 8  # c_attn, c_proj, c_fc, c_proj of two blocks


def test_a_mixture_has_adapters_on_attention_and_experts_and_none_on_its_router():
    model = tiny_moe()
    add_adapters(model, rank=4, alpha=8.0)
    trained = {name.split(".lora_")[0] for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert {name for name in trained if "layers.0" in name} == {
        "model.layers.0.self_attn.q_proj",
        "model.layers.0.self_attn.k_proj",
        "model.layers.0.self_attn.v_proj",
        "model.layers.0.self_attn.o_proj",
        "model.layers.0.mlp.experts",
        "model.layers.0.mlp.experts.base_layer",  # PEFT wraps once for each of the two matrices
    }


@pytest.mark.parametrize("make", KINDS)
def test_only_adapters_have_a_gradient_and_each_of_them_has_one(make):
    model, _ = adapted_and_moved(make)
    model(some_ids()).logits.square().mean().backward()
    moved = {name for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert moved == {name for name, _ in model.named_parameters() if ".lora_" in name}


def test_the_adapter_adds_b_a_x_times_alpha_over_rank():
    model = tiny_qwen3()
    add_adapters(model, rank=2, alpha=6.0)
    layer = model.get_submodule("model.layers.0.self_attn.q_proj")
    x = torch.zeros(1, 32)
    x[0, 0], x[0, 1] = 1.0, 2.0
    with torch.no_grad():
        layer.lora_A["default"].weight.zero_()
        layer.lora_A["default"].weight[0, 0] = 5.0  # A x = [5, 2]
        layer.lora_A["default"].weight[1, 1] = 1.0
        layer.lora_B["default"].weight.fill_(0.5)  # B A x = 3.5 everywhere; alpha / rank = 3
        added = layer(x) - layer.base_layer(x)
    torch.testing.assert_close(added, torch.full((1, 32), 10.5))


def test_the_trained_share_is_told_with_both_numbers():
    model = tiny_qwen3()  # of 19,392 weights
    add_adapters(model, rank=1, alpha=2.0)
    # Per layer: q 32+32, k and v 32+16 each, o 32+32, gate, up and down 32+64 each = 512
    assert trained_share(model) == "trainable: 1,024 of 20,416 parameters (5.0 %)"


@pytest.mark.parametrize("make", KINDS)
def test_merged_weights_compute_what_the_adapted_ones_do(make):
    model, adapted = adapted_and_moved(make)
    before = logits_of(model)
    merged = adapted.merge_and_unload()
    assert type(merged) is type(make())
    assert merged.state_dict().keys() == make().state_dict().keys()
    assert (before - logits_of(make())).abs().max() > 0.1
    torch.testing.assert_close(logits_of(merged), before, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("make", "adapters"), [(tiny_qwen3, 14), (tiny_moe, 8 + 2 * 4 * 3)])
def test_the_scripts_adapter_added_to_the_scripts_weights_gives_the_merged_ones(make, adapters):
    model, adapted = adapted_and_moved(make)
    state = scripts_adapter(model)
    base, merged = split_experts(make().state_dict()), split_experts(adapted.merge_and_unload().state_dict())
    names = {name.removesuffix(".lora.A.weight") for name in state if name.endswith(".lora.A.weight")}
    assert len(names) == adapters
    assert state.keys() == {f"{name}.lora.{part}.weight" for name in names for part in "AB"}
    for key, weight in base.items():
        name = key.removesuffix(".weight")
        if name in names:
            weight = weight + state[f"{name}.lora.B.weight"] @ state[f"{name}.lora.A.weight"]
        torch.testing.assert_close(weight, merged[key], rtol=0, atol=1e-6)


@pytest.mark.parametrize("make", KINDS)
def test_padding_and_the_other_rows_of_a_batch_change_nothing(make):
    model, _ = adapted_and_moved(make)
    model.eval()
    row = torch.tensor([[3, 5, 7, 9]])
    batch = torch.tensor([[3, 5, 7, 9, 0, 0], [1, 2, 3, 4, 5, 6]])
    mask = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]])
    with torch.no_grad():
        alone, together = model(row).logits[0], model(batch, attention_mask=mask).logits[0, :4]
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-5)
