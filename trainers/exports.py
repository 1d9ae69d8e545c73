"""How a trained policy leaves the run: a Hugging Face folder of its own, and the scripts' weight file."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from trainers.atomic import replacing
from trainers.configs import TrainConfig
from trainers.errors import ConfigurationError, Diverged
from trainers.paths import confine_path, weight_name
from trainers.weights import StateDict, config_of, split_experts

PUBLISHED = ("Qwen3ForCausalLM", "Qwen3MoeForCausalLM", "LlamaForCausalLM")  # whose keys the scripts' files have
# What the same weights are computed with. The files do not hold it, so it has to be what their reader assumes.
ASSUMED = (
    "attention_bias",
    "decoder_sparse_step",
    "head_dim",
    "hidden_act",
    "layer_types",
    "mlp_bias",
    "mlp_only_layers",
    "norm_topk_prob",
    "num_attention_heads",
    "num_experts_per_tok",
    "rms_norm_eps",
    "rope_parameters",
    "sliding_window",
    "tie_word_embeddings",
)


def save_model(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write the model and its tokenizer as a Hugging Face folder; an existing one is replaced only when complete."""
    with replacing_folder(folder) as temporary:
        model.save_pretrained(temporary)
        tokenizer.save_pretrained(temporary)


@contextmanager
def replacing_folder(folder: Path) -> Iterator[Path]:
    """Give a folder to write into; it takes the place of ``folder`` once the block is done."""
    temporary, previous = folder.with_name(folder.name + ".tmp"), folder.with_name(folder.name + ".old")
    shutil.rmtree(temporary, ignore_errors=True)
    yield temporary
    shutil.rmtree(previous, ignore_errors=True)
    if folder.exists():
        folder.rename(previous)
    temporary.rename(folder)
    shutil.rmtree(previous, ignore_errors=True)


def publish(model: PreTrainedModel, config: TrainConfig) -> str | None:
    """Write the weights where the scripts look for them. Returns and raises as ``publish_state``."""
    return publish_state(split_experts(model.state_dict()), model, name=config.save_weight, save_dir=config.save_dir)


def publish_state(state: StateDict, model: PreTrainedModel, *, name: str, save_dir: str) -> str | None:
    """Write what ``model`` learned as one of the scripts' files, in fp16 as they do; return its path as a parameter.

    ``None`` for what the scripts' weight files cannot hold, such as a reward model, or would be read from as another.

    Raises:
        Diverged: a weight is larger than fp16 can write.
    """
    if not reads_back(model):
        return None
    halved = {key: value.detach().to("cpu", torch.float16).contiguous() for key, value in state.items()}
    if any(not bool(value.isfinite().all()) for value in halved.values()):
        raise Diverged("the weights are too large for the scripts' fp16 weight file; the run's model folder has them")
    file_name = weight_name(name, model.config.hidden_size, moe=model.config.model_type == "qwen3_moe")
    folder = confine_path(save_dir, writable=True)
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / file_name, shared=True) as temporary, temporary.open("wb") as file:
        torch.save(halved, file)
    return f"{save_dir.rstrip('/')}/{file_name}"


def reads_back(model: PreTrainedModel) -> bool:
    """Return whether a weight file of ``model`` is read as the model that it is."""
    if type(model).__name__ not in PUBLISHED:
        return False
    try:
        read = config_of(model.state_dict(), num_attention_heads=model.config.num_attention_heads)
    except ConfigurationError:  # a mixture of experts whose first layer is dense
        return False
    return all(getattr(read, name, None) == getattr(model.config, name, None) for name in ASSUMED)
