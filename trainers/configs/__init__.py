"""Every training parameter, declared once: forms, command line, validation and documentation come from these classes.

Imports no torch. Defaults are those of the MiniMind scripts where they have the flag. Empty means unset (``None``): the
flag is left out and the trainer's default applies; off is the literal ``none``.
"""

from typing import get_args

from pydantic.fields import FieldInfo

from trainers.about import About, Group, PathKind
from trainers.configs.base import DataFormat, ModelSize, SizedConfig, TrainConfig, stop_at_parts
from trainers.configs.distillation import DistillationConfig
from trainers.configs.rollout import GRPOConfig, PPOConfig, RolloutConfig, SPOConfig, parse_reward_weights
from trainers.configs.supervised import (
    DPOConfig,
    LoRAConfig,
    PretrainConfig,
    RewardConfig,
    SFTConfig,
    SupervisedConfig,
)

__all__ = [
    "TRAINING_TYPES",
    "About",
    "DPOConfig",
    "DataFormat",
    "DistillationConfig",
    "GRPOConfig",
    "Group",
    "LoRAConfig",
    "ModelSize",
    "PPOConfig",
    "PathKind",
    "PretrainConfig",
    "RewardConfig",
    "RolloutConfig",
    "SFTConfig",
    "SPOConfig",
    "SizedConfig",
    "SupervisedConfig",
    "TrainConfig",
    "about",
    "choices_of",
    "parse_reward_weights",
    "stop_at_parts",
]

TRAINING_TYPES: dict[str, type[TrainConfig]] = {
    config.type_name: config
    for config in (
        PretrainConfig,
        SFTConfig,
        LoRAConfig,
        DPOConfig,
        RewardConfig,
        PPOConfig,
        GRPOConfig,
        SPOConfig,
        DistillationConfig,
    )
}


def about(field: FieldInfo) -> About:
    """Return what a person is told of a parameter."""
    return next(item for item in field.metadata if isinstance(item, About))


def choices_of(field: FieldInfo) -> tuple[str, ...]:
    """Return the words a parameter may be, empty when it is not a choice."""
    return tuple(option for option in get_args(field.annotation) if isinstance(option, str))
