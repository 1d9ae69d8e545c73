"""What SPO expects a completion to earn, as Beta counts of reward that fade while the policy moves. Pure.

A value is alpha / (alpha + beta), a number from 0 to 1; ``RewardScale`` leads from rewards there and back. An update
keeps the share rho of the old counts, the less the further the policy has drifted since they were collected, and adds
what was earned: v moves by (z - v) / (rho (alpha + beta) + 1).

``GlobalTracker`` is the MiniMind script's single pair of counts for all prompts; the paper's, one pair for each prompt,
is ``trainers.prompt_tracker``.

Source: SPO, arXiv 2509.13232, section 3, and its authors' recipe.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import torch
from torch import Tensor

from trainers.configs import SPOConfig
from trainers.ranks import Ranks
from trainers.rewards import BOUNDS
from trainers.schedule import Schedule

FIRST_RHO = 0.9  # of the script's first update, when there is nothing to measure a drift from
LARGEST_ADVANTAGE = 5.0
EQUAL = 1e-6  # advantages that spread less differ by rounding


@dataclass(frozen=True)
class Sample:
    """One completion with its prompt, and how likely the policy was to write it. On the CPU, without padding."""

    ids: Tensor  # [P + T] int32
    per_token_logps: Tensor  # [T]


@dataclass(frozen=True)
class Visits:
    """What one rollout says of the prompts it visited, B of them: the tracker learns from these."""

    rows: list[int]
    scores: Tensor  # [B] rewards on the scale from 0 to 1
    drift: Tensor  # [B]
    samples: list[Sample]


class ValueTracker(Protocol):
    """What the loop asks of a tracker; its state is alike on every rank and a part of the checkpoint."""

    rho: float  # what the last update kept

    def rows_of(self, step: int, schedule: Schedule) -> list[int]:
        """Return the prompts of this rank's part of step ``step``."""

    def values(self, rows: Sequence[int]) -> Tensor:
        """Return what is expected of a completion of each prompt, from 0 to 1, [B]."""

    def last_samples(self, rows: Sequence[int]) -> list[Sample | None]:
        """Return the completion that each prompt's drift is measured on, if there is one."""

    def advantages(self, rewards: Tensor, values: Tensor, scale: "RewardScale", ranks: Ranks) -> Tensor:
        """Return how much better than expected the rewards of this rank's part are, [B]."""

    def update(self, visits: Visits) -> None:
        """Learn from one rollout of all ranks."""

    def metrics(self) -> dict[str, float]:
        """Return the state in a few numbers."""


@dataclass(frozen=True)
class RewardScale:
    """The smallest and largest total that the enabled reward functions can give."""

    low: float
    high: float

    @classmethod
    def of(cls, weights: dict[str, float]) -> Self:
        """Return the sum of each function's bounds times its weight; a negative weight swaps them."""
        bounds = [sorted(weight * bound for bound in BOUNDS[name]) for name, weight in weights.items()]
        return cls(sum(low for low, _ in bounds), sum(high for _, high in bounds))

    def to_unit(self, rewards: Tensor) -> Tensor:
        """Return rewards [N] on the scale from 0 to 1, those beyond the bounds at its ends, in float64."""
        return ((rewards.double() - self.low) / (self.high - self.low)).clamp(0, 1)

    def to_reward(self, values: Tensor) -> Tensor:
        """Return values from 0 to 1 in units of reward, [N]."""
        return self.low + values * (self.high - self.low)


@dataclass(frozen=True)
class Memory:
    """How much of its counts a tracker keeps at an update."""

    rho_min: float
    rho_max: float
    kl_half: float

    @classmethod
    def of(cls, config: SPOConfig) -> Self:
        """Return what ``config`` asks for."""
        return cls(config.smallest_memory(), config.rho_max, config.kl_half)

    @property
    def prior(self) -> float:
        """Return the counts a tracker starts with: those that ``rho_min`` lets one reward a step settle at."""
        return 1 / (1 - self.rho_min)

    def kept(self, drift: Tensor) -> Tensor:
        """Return rho, half for each ``kl_half`` nats of drift, within its bounds, [N]."""
        return (2 ** (-drift / self.kl_half)).clamp(self.rho_min, self.rho_max)


@dataclass
class GlobalTracker:
    """One pair of counts for all prompts, so that the value is a running mean of all rewards.

    Its drift is the difference between the mean log-probability of this rollout's tokens and that of the one before.
    """

    memory: Memory
    alpha: float = field(init=False)
    beta: float = field(init=False)
    rho: float = field(init=False)
    mean_logp: float | None = None

    def __post_init__(self) -> None:
        self.alpha = self.beta = self.memory.prior / 2
        self.rho = min(max(FIRST_RHO, self.memory.rho_min), self.memory.rho_max)

    def rows_of(self, step: int, schedule: Schedule) -> list[int]:
        return schedule.rows_of(step)

    def values(self, rows: Sequence[int]) -> Tensor:
        return torch.full((len(rows),), self.alpha / (self.alpha + self.beta), dtype=torch.float64)

    def last_samples(self, rows: Sequence[int]) -> list[Sample | None]:
        return [None] * len(rows)

    def advantages(self, rewards: Tensor, values: Tensor, scale: RewardScale, ranks: Ranks) -> Tensor:
        """Return rewards minus the value in units of reward, within the script's bounds, [B]."""
        return (rewards - scale.to_reward(values)).clamp(-LARGEST_ADVANTAGE, LARGEST_ADVANTAGE).float()

    def update(self, visits: Visits) -> None:
        mean_logp = float(torch.cat([sample.per_token_logps for sample in visits.samples]).double().mean())
        if self.mean_logp is not None:
            drift = torch.tensor(abs(self.mean_logp - mean_logp), dtype=torch.float64)
            self.rho = float(self.memory.kept(drift))
        self.mean_logp = mean_logp
        score = float(visits.scores.mean())
        self.alpha = self.rho * self.alpha + score
        self.beta = self.rho * self.beta + 1 - score

    def metrics(self) -> dict[str, float]:
        return {"value/alpha": self.alpha, "value/beta": self.beta}

    def state_dict(self) -> dict[str, Any]:
        return {"alpha": self.alpha, "beta": self.beta, "rho": self.rho, "mean_logp": self.mean_logp}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state.keys() != self.state_dict().keys():
            raise ValueError("it was made with another --value_tracker")
        vars(self).update(state)


def whitened(advantages: Tensor, *, among: Tensor) -> Tensor:
    """Return advantages [B] in standard deviations from the mean of the whole batch.

    Args:
        advantages: Of a part of the batch, [B].
        among: Of the whole batch, [N]; where they differ by rounding alone, the result is exactly 0.
    """
    spread = among.std(unbiased=False)
    if spread < EQUAL:
        return torch.zeros_like(advantages)
    return (advantages - among.mean()) / (spread + 1e-8)
