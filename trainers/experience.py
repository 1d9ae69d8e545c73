"""What an update learns from: completions, their rewards, and their log-probabilities at the first update."""

from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from trainers.logps import CompletionLogps, grouped_logps
from trainers.ranks import Ranks
from trainers.rewards import Rewards
from trainers.rollout import Rollout


@dataclass
class Experience:
    """One micro-batch of whole groups; the log-probabilities are filled in by its first update."""

    rollout: Rollout
    rewards: Rewards
    old_per_token_logps: Tensor | None = None  # [n, T]
    ref_per_token_logps: Tensor | None = None  # [n, T]

    def state(self) -> dict[str, Any]:
        """Return plain tensors, for a checkpoint between two updates on one rollout."""
        return {
            "rollout": dict(vars(self.rollout)),
            "rewards": dict(vars(self.rewards)),
            "old_per_token_logps": self.old_per_token_logps,
            "ref_per_token_logps": self.ref_per_token_logps,
        }

    @classmethod
    def of(cls, state: dict[str, Any], device: torch.device) -> Self:
        """Return what ``state`` describes, on ``device``; rewards stay on the CPU."""
        on_device = {name: value.to(device) for name, value in state["rollout"].items()}
        logps = {
            name: None if state[name] is None else state[name].to(device)
            for name in ("old_per_token_logps", "ref_per_token_logps")
        }
        return cls(rollout=Rollout(**on_device), rewards=Rewards(**state["rewards"]), **logps)


def split_experience(rollout: Rollout, rewards: Rewards, rows_at_once: int) -> list[Experience]:
    """Cut a rollout into micro-batches of ``rows_at_once`` completions, the last one of what is left."""
    return [
        Experience(rollout=rollout.rows(start, start + rows_at_once), rewards=rewards.rows(start, start + rows_at_once))
        for start in range(0, len(rollout.lengths), rows_at_once)
    ]


def completion_scores(model: Any, rollout: Rollout, *, temperature: float, num_generations: int) -> CompletionLogps:
    """Return the log-probabilities of a rollout's completions, at the temperature that sampled them."""
    return grouped_logps(
        model,
        rollout.sequence_ids,
        rollout.attention_mask,
        rollout.completion_ids.shape[1],
        temperature,
        num_generations=num_generations,
    )


class TokenSums:
    """Metrics over all tokens of an optimizer batch, gathered micro-batch by micro-batch."""

    def __init__(self) -> None:
        self.sums: dict[str, tuple[float, int]] = {}  # sum and tokens
        self.largest: dict[str, float] = {}

    def add(self, completion_mask: Tensor, **per_token: Tensor) -> None:
        """Add values [n, T] at the tokens of ``completion_mask``."""
        for name, values in per_token.items():
            total, tokens = self.sums.get(name, (0.0, 0))
            self.sums[name] = (
                total + float((values.detach() * completion_mask).sum()),
                tokens + int(completion_mask.sum()),
            )

    def add_largest(self, completion_mask: Tensor, **per_token: Tensor) -> None:
        """Keep the largest of the values [n, T], none below 0, at the tokens of ``completion_mask``."""
        for name, values in per_token.items():
            self.largest[name] = max(self.largest.get(name, 0.0), float((values.detach() * completion_mask).max()))

    def values(self, ranks: Ranks) -> dict[str, float]:
        """Return the means and the largest values over all ranks."""
        everywhere = ranks.gather((self.sums, self.largest))  # a rank without a row of this step has no names
        parts = [(name, part) for sums, _ in everywhere for name, part in sums.items()]
        totals = {name: [part for known, part in parts if known == name] for name, _ in parts}
        means = {name: sum(t for t, _ in held) / max(sum(n for _, n in held), 1) for name, held in totals.items()}
        peaks = [(name, value) for _, largest in everywhere for name, value in largest.items()]
        return means | {name: max(value for known, value in peaks if known == name) for name, _ in peaks}
