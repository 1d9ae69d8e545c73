"""How many bytes a training writes, counted from its parameters alone: no torch, and no model is built.

A checkpoint is fp32 and lies there twice while it is replaced; AdamW keeps two moments of each weight that is trained.
"""

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from trainers.configs import LoRAConfig, ModelSize, PPOConfig, TrainConfig
from trainers.paths import PathRefused, resolve_path

Shape = tuple[int, ...]

FP32, FP16 = 4, 2  # bytes of a number
MOMENTS = 2
EXPERTS = 4  # of a fresh mixture, as trainers.models has it
SUNDRIES = 100_000_000  # log, metrics, samples, tokenizer
VOCABULARY = 6_400  # MiniMind's, where the tokenizer is not seen
TOKENIZER = "../dataset/tokenizer"
LOOK_AGAIN = 60.0  # seconds; every claim asks for every waiting job
NOT_ADAPTED = ("embed", "lm_head", "wte", "wpe", "norm", "mlp.gate.")


@dataclass(frozen=True, kw_only=True)
class Weights:
    """What of a model's shapes matters here."""

    parameters: int
    sides: int  # rows and columns of all matrices that an adapter is put on; times its rank, the adapter's parameters

    @classmethod
    def of(cls, shapes: Mapping[str, Shape]) -> "Weights":
        adapted = [
            math.prod(shape[:-2]) * sum(shape[-2:])
            for name, shape in shapes.items()
            if len(shape) > 1 and not any(part in name for part in NOT_ADAPTED)
        ]
        return cls(parameters=sum(map(math.prod, shapes.values())), sides=sum(adapted))


def written_bytes(config: TrainConfig, weights: Weights) -> int:
    """Return the most that a run has on the disk at one time, its published weights included."""
    checkpoint = checkpoint_bytes(config, weights)
    return reference_bytes(config, weights) + checkpoint + max(checkpoint, exported_bytes(config, weights)) + SUNDRIES


def checkpoint_bytes(config: TrainConfig, weights: Weights) -> int:
    """Return the size of one checkpoint: whatever is trained with its moments, and what a resumed run needs besides."""
    model, adapters = weights.parameters, _adapter(config, weights)
    trained = adapters or model
    numbers = model + adapters + MOMENTS * trained
    if isinstance(config, PPOConfig):  # the old actor, and a critic with moments of its own
        numbers += model + (1 + MOMENTS) * model
    return FP32 * numbers


def reference_bytes(config: TrainConfig, weights: Weights) -> int:
    """Return the size of the starting weights where the type keeps them: it has a KL term, or is DPO."""
    kept = getattr(config, "kl_coef", 0) or getattr(config, "beta", 0)
    return FP32 * weights.parameters if kept else 0


def exported_bytes(config: TrainConfig, weights: Weights) -> int:
    """Return the size of the model folder and of the scripts' weight file, those of an adapter included."""
    return (FP32 + FP16) * (weights.parameters + _adapter(config, weights))


def starting_weights(config: TrainConfig) -> Weights | None:
    """Return the weights of the folder that a run starts from; ``None`` where it is not seen from here."""
    if config.init_path is None:
        return fresh_weights(config)
    try:
        files = sorted(resolve_path(config.init_path).glob("*.safetensors"))
        shapes = [_header(file, file.stat().st_mtime_ns) for file in files]
    except (PathRefused, OSError, ValueError):
        return None
    return Weights.of({name: shape for part in shapes for name, shape in part.items()}) if shapes else None


def fresh_weights(config: TrainConfig) -> Weights:
    """Return the weights of the size that the parameters name."""
    return _weights(config.model_size(), vocabulary(config.tokenizer_path or TOKENIZER))


@lru_cache(maxsize=256)
def _weights(size: ModelSize, vocabulary: int) -> Weights:
    return Weights.of(fresh_shapes(size, vocabulary))


def fresh_shapes(size: ModelSize, vocabulary: int) -> dict[str, Shape]:
    """Return the shapes of a MiniMind-3 of that size, by name, the embeddings shared with the head."""
    hidden, head = size.hidden_size, size.hidden_size // size.num_attention_heads
    inner, keys = math.ceil(hidden * math.pi / 64) * 64, size.num_key_value_heads * head
    layer: dict[str, Shape] = {
        "q_proj": (hidden, hidden),
        "k_proj": (keys, hidden),
        "v_proj": (keys, hidden),
        "o_proj": (hidden, hidden),
        "norms": (2 * hidden + 2 * head,),
    }
    if size.use_moe:
        layer["mlp.gate."] = (EXPERTS, hidden)
        layer |= {"experts.gate_up_proj": (EXPERTS, 2 * inner, hidden), "experts.down_proj": (EXPERTS, hidden, inner)}
    else:
        layer |= {"gate_proj": (inner, hidden), "up_proj": (inner, hidden), "down_proj": (hidden, inner)}
    shapes: dict[str, Shape] = {"embed_tokens": (vocabulary, hidden), "norm": (hidden,)}
    return shapes | {f"{number}.{name}": layer[name] for number in range(size.num_hidden_layers) for name in layer}


def vocabulary(folder: str) -> int:
    """Return how many tokens the tokenizer in ``folder`` knows, MiniMind's number where it is not seen."""
    return _vocabulary(folder, int(time.monotonic() / LOOK_AGAIN))


@lru_cache(maxsize=64)
def _vocabulary(folder: str, turn: int) -> int:
    try:
        described = json.loads((resolve_path(folder) / "tokenizer.json").read_bytes())
        return len({token["content"] for token in described.get("added_tokens", [])} | set(described["model"]["vocab"]))
    except (PathRefused, OSError, ValueError, LookupError, TypeError):
        return VOCABULARY


@lru_cache(maxsize=256)
def _header(file: Path, changed: int) -> dict[str, Shape]:
    """Return the shapes in a safetensors file: its first 8 bytes say how long the JSON is that follows."""
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        if length > 100_000_000:  # the format's own bound
            raise ValueError(f"{file} is no safetensors file")
        described = json.loads(opened.read(length))
    return {name: tuple(value["shape"]) for name, value in described.items() if name != "__metadata__"}


def _adapter(config: TrainConfig, weights: Weights) -> int:
    return config.lora_rank * weights.sides if isinstance(config, LoRAConfig) else 0
