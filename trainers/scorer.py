"""A model that scores conversations: the backbone of a language model, and a head that reads its last token's state."""

import copy
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForSequenceClassification, PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase
from transformers.models.qwen3_moe.modeling_qwen3_moe import load_balancing_loss_func

from trainers.configs import TrainConfig
from trainers.errors import ConfigurationError, as_configuration_error
from trainers.models import (
    check_vocabulary,
    kept_architecture,
    load_folder,
    load_policy,
    moe_options,
    quiet_transformers,
)
from trainers.paths import confine_path
from trainers.tokenizer import tokenizer_folder


def load_scorer(
    config: TrainConfig, tokenizer: PreTrainedTokenizerBase, *, kept: Path | None = None
) -> PreTrainedModel:
    """Return the language model that training starts from with a fresh head that scores, in fp32 on the CPU.

    A folder of ``init_path`` that holds a reward model already is taken as it is.

    Args:
        config: Of the run.
        tokenizer: Of the run.
        kept: Folder that a resumed run kept its architecture in: the checkpoint brings the weights.

    Raises:
        ConfigurationError: as ``load_policy``, or transformers has no class that scores for the architecture.
    """
    quiet_transformers()
    if kept is not None and (found := kept_architecture(kept)) is not None:
        return _from_config(found)
    if config.init_path is not None and _scores(folder := confine_path(config.init_path)):
        scorer = _with_a_score(load_folder(folder, kind=AutoModelForSequenceClassification))
        check_vocabulary(scorer, tokenizer, padded=tokenizer_folder(config) == folder)
        return scorer
    policy = load_policy(config, tokenizer)
    described = copy.deepcopy(policy.config)
    described.num_labels = 1
    # transformers looks for the last token that is no padding; where padding is the end token, only lengths tell.
    shared = tokenizer.pad_token_id == tokenizer.eos_token_id
    described.pad_token_id = None if shared else tokenizer.pad_token_id
    scorer = _from_config(described)
    scorer.base_model.load_state_dict(policy.base_model.state_dict())  # every key, or an error
    return scorer


def score_conversations(scorer: Any, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor | float]:
    """Return the score of each conversation at its last token, [N], and the weighted balance of a mixture of experts.

    Args:
        scorer: A sequence-classification model of one label.
        input_ids: Conversations padded on the right, [N, S].
        attention_mask: 1 on real tokens, [N, S].
    """
    outputs = scorer.base_model(
        input_ids=input_ids, attention_mask=attention_mask, use_cache=False, **moe_options(scorer)
    )
    last = (attention_mask.sum(-1) - 1).view(-1, 1, 1)  # [N, 1, 1]
    states = outputs.last_hidden_state.take_along_dim(last, dim=1).squeeze(1)  # [N, hidden]
    with torch.autocast(states.device.type, enabled=False):  # two scores differ by less than bf16 tells apart
        scores = scorer.score(states.float()).squeeze(-1)  # [N]
    return scores, _balance(scorer, outputs, attention_mask)


def _balance(scorer: Any, outputs: Any, attention_mask: Tensor) -> Tensor | float:
    if not (router_logits := getattr(outputs, "router_logits", None)):
        return 0.0
    experts, chosen = scorer.config.num_experts, scorer.config.num_experts_per_tok
    balance: Any = load_balancing_loss_func(router_logits, experts, chosen, attention_mask)
    weighted: Tensor = scorer.config.router_aux_loss_coef * balance
    return weighted


def _scores(folder: Path) -> bool:
    with as_configuration_error(f"no model can be loaded from {folder}"):
        described = json.loads((folder / "config.json").read_bytes()) if (folder / "config.json").exists() else {}
        return any(kind.endswith("ForSequenceClassification") for kind in described.get("architectures") or [])


def _from_config(described: PretrainedConfig) -> PreTrainedModel:
    with as_configuration_error(f"transformers has no class that scores for {described.model_type} models"):
        scorer: PreTrainedModel = AutoModelForSequenceClassification.from_config(described, dtype=torch.float32)
    return _with_a_score(scorer)


def _with_a_score(scorer: PreTrainedModel) -> PreTrainedModel:
    if not hasattr(scorer, "score") or scorer.config.num_labels != 1:
        raise ConfigurationError(
            f"{type(scorer).__name__} with {scorer.config.num_labels} labels gives no score of the last token; "
            "start from another model"
        )
    return scorer
