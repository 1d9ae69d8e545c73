"""The policy that training starts from: a fresh MiniMind-3, the scripts' weights, or a Hugging Face folder."""

import copy
import json
import math
import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from trainers.configs import ModelSize, TrainConfig
from trainers.errors import ConfigurationError, as_configuration_error
from trainers.paths import confine_path, weight_name
from trainers.tokenizer import tokenizer_folder
from trainers.weights import StateDict, config_of, qwen3_config, read_weights

FRESH_EXPERTS = 4


def load_policy(
    config: TrainConfig, tokenizer: PreTrainedTokenizerBase, *, kept: Path | None = None
) -> PreTrainedModel:
    """Return the model that training starts from, in fp32 on the CPU.

    Args:
        config: Of the run.
        tokenizer: Of the run.
        kept: Folder that a resumed run kept its architecture in: the checkpoint brings the weights.

    Raises:
        ConfigurationError: the weights are missing, or do not fit the parameters or the tokenizer.
    """
    quiet_transformers()
    if kept is not None and (found := kept_architecture(kept)) is not None:
        return from_config(found)
    if config.init_path is not None:
        folder = confine_path(config.init_path)
        model = load_folder(folder)
        check_vocabulary(model, tokenizer, padded=tokenizer_folder(config) == folder)
    elif (path := weight_path(config)) is None:
        return fresh_model(config.model_size(), tokenizer)
    else:
        model = load_weights(path, config.model_size())
        check_vocabulary(model, tokenizer, padded=False)
    return model


def quiet_transformers() -> None:
    """Keep the library's notes and progress bars out of the log."""
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()


def kept_architecture(folder: Path) -> PretrainedConfig | None:
    """Return the architecture of a resumed run; ``None`` when it brings code, which lies with the weights alone."""
    with as_configuration_error(f"the architecture in {folder} cannot be read"):
        described = json.loads((folder / "config.json").read_bytes())
        return None if "auto_map" in described else AutoConfig.from_pretrained(folder, local_files_only=True)


def fresh_model(size: ModelSize, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    """Return a MiniMind-3 of that size with random weights, drawn from torch's generator."""
    return from_config(
        qwen3_config(
            num_experts=FRESH_EXPERTS if size.use_moe else 0,
            vocab_size=len(tokenizer),
            hidden_size=size.hidden_size,
            intermediate_size=math.ceil(size.hidden_size * math.pi / 64) * 64,
            num_hidden_layers=size.num_hidden_layers,
            num_attention_heads=size.num_attention_heads,
            num_key_value_heads=size.num_key_value_heads,
            head_dim=size.hidden_size // size.num_attention_heads,
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
    chosen_by = next((flag for flag in ("from_weight", "from_student_weight") if hasattr(config, flag)), None)
    fresh = f", or --{chosen_by} none for a fresh model" if chosen_by else ""
    return published_weights(
        config,
        name,
        config.model_size(),
        otherwise="start from a model folder or another job's weights (--init_path; in the admin: Start from)" + fresh,
    )


def published_weights(config: TrainConfig, name: str, size: ModelSize, *, otherwise: str) -> Path:
    """Return the file of the weights ``name`` in the first of the config's folders that has it.

    Raises:
        ConfigurationError: there is no such file; ``otherwise`` says what else can be done.
    """
    file_name = weight_name(name, size.hidden_size, moe=size.use_moe)
    paths = [confine_path(folder) / file_name for folder in config.weight_folders()]
    if found := [path for path in paths if path.exists()]:
        return found[0]
    looked_at = " or ".join(map(str, paths))
    raise ConfigurationError(f"no weights at {looked_at}; train them first (--save_weight {name}), or {otherwise}")


def load_weights(path: Path, size: ModelSize) -> PreTrainedModel:
    """Return the model of one of the scripts' weight files; every key and every shape has to fit.

    Raises:
        ConfigurationError: it is no such file, or it holds another size than is asked for.
    """
    state = read_weights(path)
    with as_configuration_error(f"the shapes in {path} make no model"):
        found = config_of(state, num_attention_heads=size.num_attention_heads)
        for name in ("hidden_size", "num_hidden_layers"):
            if (held := getattr(found, name)) != (asked := getattr(size, name)):
                raise ConfigurationError(f"{path} has {name} {held}, but {name} {asked} was asked for")
        if (held := hasattr(found, "num_experts")) != size.use_moe:
            kinds = {True: "a mixture of experts", False: "a dense model"}
            raise ConfigurationError(f"{path} holds {kinds[held]}, but {kinds[size.use_moe]} was asked for")
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


def load_folder(folder: Path, *, kind: Any = AutoModelForCausalLM) -> PreTrainedModel:
    """Return the model of a Hugging Face folder, a causal language model; every key and every shape has to fit.

    Raises:
        ConfigurationError: there is none, or its weights leave a part of the model random.
    """
    if not (folder / "config.json").exists():
        raise ConfigurationError(f"no model in {folder}: it has no config.json")
    with as_configuration_error(f"no model can be loaded from {folder}"):
        loaded: Any = kind.from_pretrained(
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
    if (head := model.get_output_embeddings()) is not None and head.weight is not model.get_input_embeddings().weight:
        model.config.tie_word_embeddings = False  # as its weights are, whatever it said: a resume builds it from this
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


def frozen_copy(model: PreTrainedModel) -> PreTrainedModel:
    """Return a copy that is never trained."""
    return copy.deepcopy(model).requires_grad_(False)


def moe_options(model: PreTrainedModel) -> dict[str, Any]:
    """Return what a training forward needs so that a mixture of experts also gives its balancing loss."""
    return {"output_router_logits": True} if hasattr(model.config, "router_aux_loss_coef") else {}


def moe_loss(model: PreTrainedModel, outputs: Any) -> Tensor | float:
    """Return the weighted balancing loss of a forward with ``moe_options``; 0 for a dense model."""
    loss: Tensor | None = getattr(outputs, "aux_loss", None)
    return 0.0 if loss is None else float(model.config.router_aux_loss_coef) * loss
