"""The policy that training starts from: a fresh MiniMind-3, the scripts' weights, or a Hugging Face folder."""

import math
import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from trainers.configs import TrainConfig
from trainers.errors import ConfigurationError, as_configuration_error
from trainers.paths import confine_path, weight_name
from trainers.tokenizer import tokenizer_folder
from trainers.weights import StateDict, config_of, qwen3_config, read_weights

FRESH_EXPERTS = 4


def load_policy(config: TrainConfig, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    """Return the model that training starts from, in fp32 on the CPU.

    Raises:
        ConfigurationError: the weights are missing, or do not fit the parameters or the tokenizer.
    """
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    if config.init_path is not None:
        folder = confine_path(config.init_path)
        model = load_folder(folder)
        check_vocabulary(model, tokenizer, padded=tokenizer_folder(config) == folder)
    elif (path := weight_path(config)) is None:
        return fresh_model(config, tokenizer)
    else:
        model = load_weights(path, config)
        check_vocabulary(model, tokenizer, padded=False)
    return model


def fresh_model(config: TrainConfig, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    """Return a MiniMind-3 of the asked size with random weights, drawn from torch's generator."""
    return from_config(
        qwen3_config(
            num_experts=FRESH_EXPERTS if config.use_moe else 0,
            vocab_size=len(tokenizer),
            hidden_size=config.hidden_size,
            intermediate_size=math.ceil(config.hidden_size * math.pi / 64) * 64,
            num_hidden_layers=config.num_hidden_layers,
            num_attention_heads=config.num_attention_heads,
            num_key_value_heads=config.num_key_value_heads,
            head_dim=config.hidden_size // config.num_attention_heads,
        )
    )


def weight_path(config: TrainConfig) -> Path | None:
    """Return the weight file that the script's rule names, or ``None`` for a fresh model.

    Raises:
        ConfigurationError: there is no such file.
    """
    name = config.starting_weights()
    if name is None:
        return None
    path = confine_path(config.save_dir) / weight_name(name, config.hidden_size, moe=config.use_moe)
    if not path.exists():
        fresh = ", or --from_weight none for a fresh model" if hasattr(config, "from_weight") else ""
        raise ConfigurationError(
            f"no weights at {path}; train them first (--save_weight {name}), or start from a model folder or another "
            f"job's weights (--init_path; in the admin: Start from){fresh}"
        )
    return path


def load_weights(path: Path, config: TrainConfig) -> PreTrainedModel:
    """Return the model of one of the scripts' weight files; every key and every shape has to fit.

    Raises:
        ConfigurationError: it is no such file, or it holds another size than ``config`` asks for.
    """
    state = read_weights(path)
    with as_configuration_error(f"the shapes in {path} make no model"):
        found = config_of(state, num_attention_heads=config.num_attention_heads)
        for name in ("hidden_size", "num_hidden_layers"):
            if (held := getattr(found, name)) != (asked := getattr(config, name)):
                raise ConfigurationError(f"{path} has {name} {held}, but --{name} {asked} was asked for")
        model = from_config(found)
    if misfit := compare_states(model.state_dict(), state):
        raise ConfigurationError(f"{path} does not fit {type(model).__name__}: {misfit}")
    model.load_state_dict(state)
    return model


def compare_states(expected: StateDict, found: StateDict) -> str:
    """Return in one line how two state dicts differ in keys or shapes; empty when they do not."""
    shapes = [
        f"{key} is {list(found[key].shape)} instead of {list(value.shape)}"
        for key, value in expected.items()
        if key in found and found[key].shape != value.shape
    ]
    return "; ".join(
        f"{what}: {', '.join(keys[:3])}{f' and {len(keys) - 3} more' if len(keys) > 3 else ''}"
        for what, keys in (
            ("missing", sorted(expected.keys() - found.keys())),
            ("unexpected", sorted(found.keys() - expected.keys())),
            ("wrong size", shapes),
        )
        if keys
    )


def load_folder(folder: Path) -> PreTrainedModel:
    """Return the causal language model of a Hugging Face folder; every key and every shape has to fit.

    Raises:
        ConfigurationError: there is none, or its weights leave a part of the model random.
    """
    if not (folder / "config.json").exists():
        raise ConfigurationError(f"no model in {folder}: it has no config.json")
    with as_configuration_error(f"no model can be loaded from {folder}"):
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=torch.float32,
            local_files_only=True,
            trust_remote_code=remote_code_allowed(),
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
    model, report = loaded
    kinds = {"missing": "missing_keys", "unexpected": "unexpected_keys", "wrong size": "mismatched_keys"}
    misfits = [f"{what}: {', '.join(map(str, sorted(report[key])[:3]))}" for what, key in kinds.items() if report[key]]
    if misfits:
        raise ConfigurationError(f"the weights in {folder} do not fit its config.json: {'; '.join(misfits)}")
    return model  # type: ignore[no-any-return]  # the library is not typed


def remote_code_allowed() -> bool:
    """Return whether the operator lets model folders bring code that is run."""
    return os.environ.get("NIGHTSHIFT_TRUST_REMOTE_CODE") == "1"


def from_config(config: PretrainedConfig) -> PreTrainedModel:
    """Return a model with random weights."""
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32)  # type: ignore[no-any-return]


def check_vocabulary(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, padded: bool) -> None:
    """Raise ConfigurationError unless the vocabularies are alike; ``padded`` weights may hold more than they use."""
    held, known = vocabulary_of(model), len(tokenizer)
    if held != known and not (padded and held > known):
        raise ConfigurationError(
            f"the weights have a vocabulary of {held} tokens and the tokenizer one of {known}; "
            "name the tokenizer they were trained with by --tokenizer_path"
        )


def check_positions(model: PreTrainedModel, lengths: dict[str, int]) -> None:
    """Raise ConfigurationError when the parameters in ``lengths`` add up to more positions than the model has."""
    longest, known = sum(lengths.values()), getattr(model.config, "max_position_embeddings", None)
    if known is not None and longest > known:
        asked = " and ".join(f"--{name} {length}" for name, length in lengths.items())
        raise ConfigurationError(
            f"{asked}: up to {longest} tokens, and the model has {known} positions; lower "
            f"{'one of them' if len(lengths) > 1 else 'it'}"
        )


def vocabulary_of(model: PreTrainedModel) -> int:
    """Return how many tokens the model knows."""
    embeddings: Any = model.get_input_embeddings()
    return int(embeddings.weight.shape[0])


def moe_options(model: PreTrainedModel) -> dict[str, Any]:
    """Return what a training forward needs so that a mixture of experts also gives its balancing loss."""
    return {"output_router_logits": True} if hasattr(model.config, "router_aux_loss_coef") else {}


def moe_loss(model: PreTrainedModel, outputs: Any) -> Tensor | float:
    """Return the weighted balancing loss of a forward with ``moe_options``; 0 for a dense model."""
    loss: Tensor | None = getattr(outputs, "aux_loss", None)
    return 0.0 if loss is None else float(model.config.router_aux_loss_coef) * loss
