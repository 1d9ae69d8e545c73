"""The MiniMind scripts' weight files: recognise a layout, and turn its keys into transformers' and back.

A file holds one state dict in fp16. MiniMind-3 is Qwen3 (its mixture of experts Qwen3-MoE, whose experts transformers
keeps fused), MiniMind-2 is Llama. A MiniMind-2 mixture of experts has shared experts, which transformers knows nowhere.
"""

import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import LlamaConfig, PretrainedConfig, Qwen3Config, Qwen3MoeConfig

from trainers.errors import ConfigurationError, as_configuration_error

StateDict = dict[str, Tensor]

SHARED: dict[str, Any] = {
    "max_position_embeddings": 32_768,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e6},
}
MOE: dict[str, Any] = {"num_experts_per_tok": 1, "norm_topk_prob": True, "router_aux_loss_coef": 5e-4}
EXPERT = re.compile(r"(?P<layer>.*\.mlp\.experts\.)(?P<number>\d+)\.(?P<part>gate|up|down)_proj\.weight")


def read_weights(path: Path) -> StateDict:
    """Return the state dict of a weight file in fp32, with transformers' keys.

    Raises:
        ConfigurationError: the file holds no state dict, or one that no class in transformers computes.
    """
    with as_configuration_error(f"{path} is no weight file"):
        state = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(state, dict) or not all(
        isinstance(key, str) and isinstance(value, Tensor) for key, value in state.items()
    ):
        raise ConfigurationError(f"{path} is no weight file: it holds something other than named tensors")
    if any(".shared_experts." in key for key in state):
        raise ConfigurationError(
            f"{path} is a MiniMind-2 mixture of experts with shared experts, which is not "
            "supported; use dense MiniMind-2 or any MiniMind-3 weights"
        )
    return fuse_experts({key: value.float() for key, value in state.items()})


def config_of(state: StateDict, *, num_attention_heads: int) -> PretrainedConfig:
    """Return the configuration that the shapes of ``state`` describe; only Llama's head count has to be told.

    Raises:
        ConfigurationError: the keys are not those of a MiniMind layout.
    """
    layers = {int(found[1]) for key in state if (found := re.match(r"model\.layers\.(\d+)\.", key))}
    attention = "model.layers.0.self_attn."
    try:
        vocab_size, hidden_size = state["model.embed_tokens.weight"].shape
        query, key = state[attention + "q_proj.weight"].shape[0], state[attention + "k_proj.weight"].shape[0]
        if (norm := state.get(attention + "q_norm.weight")) is None:
            num_experts, head_dim = 0, query // num_attention_heads
            intermediate_size = state["model.layers.0.mlp.gate_proj.weight"].shape[0]
        else:
            num_experts, head_dim = len(state.get("model.layers.0.mlp.gate.weight", ())), norm.shape[0]
            inner = "experts.down_proj" if num_experts else "down_proj.weight"
            intermediate_size = state[f"model.layers.0.mlp.{inner}"].shape[-1]
    except KeyError as missing:
        raise ConfigurationError(f"not the layout of MiniMind's weights: there is no {missing}") from None
    sizes: dict[str, Any] = {
        "vocab_size": vocab_size,
        "hidden_size": hidden_size,
        "intermediate_size": intermediate_size,
        "num_hidden_layers": max(layers) + 1,
        "num_attention_heads": query // head_dim,
        "num_key_value_heads": key // head_dim,
        "head_dim": head_dim,
        "tie_word_embeddings": tied(state),
    }
    if norm is None:
        return LlamaConfig(**sizes, **SHARED, rms_norm_eps=1e-5)
    return qwen3_config(num_experts=num_experts, **sizes)


def qwen3_config(
    *, num_experts: int, intermediate_size: int, tie_word_embeddings: bool = True, **sizes: int
) -> PretrainedConfig:
    """Return the configuration of a MiniMind-3 model, dense when ``num_experts`` is 0."""
    settings: dict[str, Any] = {
        **sizes,
        **SHARED,
        "rms_norm_eps": 1e-6,
        "intermediate_size": intermediate_size,
        "tie_word_embeddings": tie_word_embeddings,
    }
    if not num_experts:
        return Qwen3Config(**settings)
    return Qwen3MoeConfig(**settings, **MOE, num_experts=num_experts, moe_intermediate_size=intermediate_size)


def tied(state: StateDict) -> bool:
    """Return whether reading and writing share their embeddings, as in the scripts; a file holds both."""
    head = state.get("lm_head.weight")
    return head is None or torch.equal(head, state["model.embed_tokens.weight"])


def fuse_experts(state: StateDict) -> StateDict:
    """Return ``state`` with each layer's experts stacked as transformers keeps them; dense states stay as they are."""
    fused = {key: value for key, value in state.items() if not EXPERT.fullmatch(key)}
    experts: dict[str, dict[tuple[int, str], Tensor]] = {}
    for key, value in state.items():
        if found := EXPERT.fullmatch(key):
            experts.setdefault(found["layer"], {})[int(found["number"]), found["part"]] = value
    for layer, parts in experts.items():
        numbers = range(max(number for number, _ in parts) + 1)
        try:
            fused[layer + "gate_up_proj"] = torch.stack(  # [E, 2 * inner, hidden]
                [torch.cat([parts[number, "gate"], parts[number, "up"]]) for number in numbers]
            )
            fused[layer + "down_proj"] = torch.stack(  # [E, hidden, inner]
                [parts[number, "down"] for number in numbers]
            )
        except KeyError as missing:
            raise ConfigurationError(f"{layer} lacks the projection {missing.args[0]}") from None
    return fused


def split_experts(state: StateDict) -> StateDict:
    """Return ``state`` with the scripts' one tensor per expert and projection; the inverse of ``fuse_experts``."""
    split: StateDict = {}
    for key, value in state.items():
        layer, _, part = key.rpartition(".")
        if part == "gate_up_proj":
            for number, expert in enumerate(value):
                split[f"{layer}.{number}.gate_proj.weight"], split[f"{layer}.{number}.up_proj.weight"] = expert.chunk(2)
        elif part == "down_proj":
            split |= {f"{layer}.{number}.down_proj.weight": expert for number, expert in enumerate(value)}
        else:
            split[key] = value
    return split
