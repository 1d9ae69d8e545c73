"""How a trained policy leaves the run: a Hugging Face folder of its own, and the scripts' weight file."""

import shutil
from pathlib import Path

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from trainers.atomic import replacing
from trainers.configs import TrainConfig
from trainers.errors import Diverged
from trainers.paths import confine_path, weight_name
from trainers.weights import split_experts

PUBLISHED = ("Qwen3ForCausalLM", "Qwen3MoeForCausalLM", "LlamaForCausalLM")  # whose keys the scripts' files have


def save_model(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write the model and its tokenizer as a Hugging Face folder; an existing one is replaced only when complete."""
    temporary, previous = folder.with_name(folder.name + ".tmp"), folder.with_name(folder.name + ".old")
    shutil.rmtree(temporary, ignore_errors=True)
    model.save_pretrained(temporary)
    tokenizer.save_pretrained(temporary)
    shutil.rmtree(previous, ignore_errors=True)
    if folder.exists():
        folder.rename(previous)
    temporary.rename(folder)
    shutil.rmtree(previous, ignore_errors=True)


def publish(model: PreTrainedModel, config: TrainConfig) -> str | None:
    """Write the weights where the scripts look for them, in fp16 as they do; return the path as a parameter writes it.

    ``None`` for an architecture that the scripts' weight files cannot hold, such as a reward model.

    Raises:
        Diverged: a weight is larger than fp16 can write.
    """
    if type(model).__name__ not in PUBLISHED:
        return None
    state = {
        key: value.detach().to("cpu", torch.float16).contiguous()
        for key, value in split_experts(model.state_dict()).items()
    }
    if any(not bool(value.isfinite().all()) for value in state.values()):
        raise Diverged("the weights are too large for the scripts' fp16 weight file; the run's model folder has them")
    name = weight_name(config.save_weight, model.config.hidden_size, moe=model.config.model_type == "qwen3_moe")
    folder = confine_path(config.save_dir, writable=True)
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / name, shared=True) as temporary, temporary.open("wb") as file:
        torch.save(state, file)
    return f"{config.save_dir.rstrip('/')}/{name}"
