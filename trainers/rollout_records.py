"""What a rollout leaves in the metrics, the samples and the log, by TRL's names."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from dataset.prompts import Prompt
from trainers.experience import Experience
from trainers.ranks import Ranks
from trainers.rewards import MODEL_SCORE_LIMIT, Rewards
from trainers.rollout import Rollout

RECORDED_PROMPTS = 4
STEPS_TO_WARN = 10
ADVICE = {
    "frac_reward_zero_std": (
        0.8,
        "more than 80 % of the groups had completions of one reward, which teach nothing; "
        "look at the samples: is the task too hard, too easy, or the reward too coarse?",
    ),
    "completions/clipped_ratio": (
        0.5,
        "most completions reached --max_gen_len before their end; raise it, or start "
        "from weights that have learned to stop",
    ),
    "reward_model/saturated_ratio": (
        0.5,
        f"the reward model scored most completions at or beyond +-{MODEL_SCORE_LIMIT:g}, where all look alike; "
        "is it a model of this language and template?",
    ),
    "early_stop": (
        0.5,
        "the early stop has skipped every optimizer step; lower --learning_rate, --ppo_update_iters or "
        "--update_old_actor_freq, or raise --early_stop_kl",
    ),
}


def rollout_metrics(batches: Sequence[Experience], num_generations: int, ranks: Ranks) -> dict[str, float]:
    """Return what the completions of one optimizer batch, those of all ranks, earned and how long they are."""
    each = {
        name: ranks.cat(torch.cat([batch.rewards.each[name] for batch in batches])) for name in batches[0].rewards.each
    }
    total = ranks.cat(torch.cat([batch.rewards.total for batch in batches]))
    lengths = ranks.cat(torch.cat([batch.rollout.lengths for batch in batches]))
    truncated = ranks.cat(torch.cat([batch.rollout.truncated for batch in batches]))
    return reward_metrics(total, each, num_generations) | length_metrics(lengths, truncated)


def reward_metrics(total: Tensor, each: dict[str, Tensor], num_generations: int) -> dict[str, float]:
    """Return the mean reward, the mean spread within a group, and the share of groups that teach nothing.

    With one completion per prompt the batch is the group, and that share means nothing.
    """
    groups = total.view(-1, num_generations) if num_generations > 1 else total[None]  # [B, G]
    constant = groups.amax(dim=1) == groups.amin(dim=1)
    return {
        "reward": float(groups.mean()),
        "reward_std": float(groups.std(dim=1, unbiased=False).mean()),
        **({"frac_reward_zero_std": float(constant.float().mean())} if num_generations > 1 else {}),
        **{f"rewards/{name}/mean": float(values.mean()) for name, values in each.items()},
        **({"reward_model/saturated_ratio": saturated_ratio(each["reward_model"])} if "reward_model" in each else {}),
    }


def saturated_ratio(scores: Tensor) -> float:
    """Return the share of the reward model's scores, [N], that lay at or beyond the limits they are clamped to."""
    return float((scores.abs() >= MODEL_SCORE_LIMIT).float().mean())


def length_metrics(lengths: Tensor, truncated: Tensor) -> dict[str, float]:
    """Return lengths in tokens, of all completions and of those that ended by themselves (0 if none did)."""
    ended = lengths[~truncated].float()
    return {
        "completions/mean_length": float(lengths.float().mean()),
        "completions/clipped_ratio": float(truncated.float().mean()),
        "completions/mean_terminated_length": float(ended.mean()) if len(ended) else 0.0,
    }


def sample_rows(
    step: int,
    prompt_texts: Sequence[str],
    prompts: Sequence[Prompt],
    texts: Sequence[str],
    rollout: Rollout,
    rewards: Rewards,
    advantages: Tensor,
) -> list[dict[str, Any]]:
    """Return one row of samples.jsonl for each of the first prompts.

    Args:
        step: The optimizer step.
        prompt_texts: Each prompt as the model saw it; ``prompts`` are the rows they come from, B of them.
        texts: Completions, B*G of them; ``rollout``, ``rewards`` and ``advantages`` are theirs.
    """
    each = {name: values.tolist() for name, values in rewards.each.items()}
    completions = [
        {
            "text": text,
            "rewards": {name: values[row] for name, values in each.items()},
            "reward": reward,
            "advantage": advantage,
            "length": length,
            "truncated": truncated,
        }
        for row, (text, reward, advantage, length, truncated) in enumerate(
            zip(
                texts,
                rewards.total.tolist(),
                advantages.tolist(),
                rollout.lengths.tolist(),
                rollout.truncated.tolist(),
                strict=True,
            )
        )
    ]
    group = len(texts) // len(prompts)
    return [
        {
            "step": step,
            "kind": "train",
            "prompt": prompt_texts[row],
            "answer": prompts[row].answer,
            "completions": completions[row * group : (row + 1) * group],
        }
        for row in range(min(RECORDED_PROMPTS, len(prompts)))
    ]


class RolloutWatch:
    """Say once in the log what a person should look at, when it has lasted for ten steps."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self.log = log
        self.lasted = dict.fromkeys(ADVICE, 0)

    def look(self, values: dict[str, float]) -> None:
        """Count the steps in a row that are in trouble."""
        for name, (bound, advice) in ADVICE.items():
            if self.lasted[name] == STEPS_TO_WARN:
                continue
            self.lasted[name] = self.lasted[name] + 1 if values.get(name, 0.0) > bound else 0
            if self.lasted[name] == STEPS_TO_WARN:
                self.log(f"warning: for {STEPS_TO_WARN} steps, {advice}")
