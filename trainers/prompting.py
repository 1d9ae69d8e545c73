"""How a rollout's prompts are written, which rollouts are recorded, and which can be gone on with."""

import random
from collections.abc import Sequence
from typing import Any

from dataset.prompts import Prompt, prompt_ids
from trainers.configs import RolloutConfig
from trainers.errors import ConfigurationError


def tokenize(prompts: Sequence[Prompt], tokenizer: Any, config: RolloutConfig, *, step: int) -> list[list[int]]:
    """Return each prompt's tokens, a ``thinking_ratio`` of them with an opened ``<think>``."""
    chance = random.Random(f"{config.seed}/{step}")
    return [
        prompt_ids(tokenizer, prompt.messages, config.max_seq_len, thinking=chance.random() < config.thinking_ratio)
        for prompt in prompts
    ]


def samples_due(config: RolloutConfig, step: int, *, updates_per_rollout: int) -> bool:
    """Return whether the rollout made for ``step`` is recorded: the first, and one every ``sample_interval``."""
    last_update = step + updates_per_rollout - 1
    return step == 1 or last_update // config.sample_interval > (step - 1) // config.sample_interval


def check_sampling(extra: dict[str, Any], config: RolloutConfig, *, names: Sequence[str]) -> None:
    """Raise ConfigurationError when a resumed rollout, which has updates left, was sampled with other ``names``."""
    made_with = extra.get("sampling", {}) if extra.get("batches") else {}
    if changed := [
        f"{name} {made_with[name]}, now {now}"
        for name in names
        if name in made_with and made_with[name] != (now := getattr(config, name))
    ]:
        raise ConfigurationError(
            f"the checkpoint lies between two updates on one rollout, made with "
            f"{'; '.join(changed)}; resume with what it was made with, or start a new job"
        )
