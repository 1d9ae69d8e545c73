"""How a rollout's prompts are written, and which rollouts are recorded."""

import random
from collections.abc import Sequence
from typing import Any

from dataset.prompts import Prompt, prompt_ids
from trainers.configs import RolloutConfig


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
