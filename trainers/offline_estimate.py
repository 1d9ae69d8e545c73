"""The first value of every prompt, from completions sampled before training.

A checkpoint follows every tenth, so that a run that is stopped or killed goes on from there.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from dataset.prompts import Prompt, PromptRows
from trainers.configs import SPOConfig
from trainers.prompt_tracker import DistinctPrompts, PromptTracker
from trainers.prompting import tokenize
from trainers.rewards import Rewards
from trainers.rollout import RolloutEngine, completion_texts
from trainers.runtime import Run
from trainers.value_tracker import RewardScale

COMPLETIONS_AT_ONCE = 256
REPORTS = 10

Sampled = tuple[Tensor, int]  # sum of each prompt's scores, and how many tokens that took


def estimate_values(
    tracker: PromptTracker,
    rows: PromptRows | DistinctPrompts,
    run: Run,
    config: SPOConfig,
    *,
    engine: RolloutEngine,
    tokenizer: Any,
    reward: Callable[[Sequence[str], Sequence[Prompt]], Rewards],
    scale: RewardScale,
) -> None:
    """Estimate the prompts that have no value yet, each rank a part of them, and log how far it has come.

    Raises:
        Stopped: the run was asked to end.
    """

    def sample(prompts: list[Prompt]) -> Sampled:
        asked = tokenize(prompts, tokenizer, config, step=-tracker.estimated)
        with run.autocast():
            rollout = engine.rollout(
                asked,
                num_generations=config.offline_samples,
                max_gen_len=config.max_gen_len,
                temperature=config.temperature,
            )
        repeated = [prompt for prompt in prompts for _ in range(config.offline_samples)]
        scores = scale.to_unit(reward(completion_texts(rollout, tokenizer), repeated).total)
        return scores.view(-1, config.offline_samples).sum(dim=1), int(rollout.attention_mask.sum())

    at_once = max(1, COMPLETIONS_AT_ONCE // config.offline_samples) * run.ranks.world_size
    while tracker.estimated < len(rows):
        run.stop_if_requested()
        chunk = range(tracker.estimated, min(tracker.estimated + at_once, len(rows)))
        mine = [rows[index] for index in run.schedule.share(chunk)]
        successes, tokens = sample(mine) if mine else (torch.zeros(0, dtype=torch.float64), 0)
        run.count("num_tokens", tokens)
        tracker.estimate(run.ranks.cat(successes), config.offline_samples)
        run.changed()
        if chunk.stop * REPORTS // len(rows) > chunk.start * REPORTS // len(rows):
            tell(tracker, run, config.offline_samples)
            run.save()


def tell(tracker: PromptTracker, run: Run, num_samples: int) -> None:
    """Log how many prompts have a value, and their mean."""
    mean = float(tracker.values(range(tracker.estimated)).mean())
    run.log(
        f"estimated {tracker.estimated} of {len(tracker.keys)} prompts, offline_samples {num_samples}; "
        f"mean value {mean:.4g}"
    )
