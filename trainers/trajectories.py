"""What PPO learns from: a rollout cut into optimizer steps, with what critic, old actor and reference say of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from trainers.experience import Experience, split_experience
from trainers.gae import explained_variance, gae, terminal_rewards, token_moments, whiten
from trainers.ranks import Ranks
from trainers.rewards import Rewards
from trainers.rollout import Rollout

OWN = ("old_values", "advantages", "returns")


@dataclass(kw_only=True)
class Trajectories(Experience):
    """One micro-batch of completions, and which optimizer step of every pass learns from it."""

    part: int
    old_values: Tensor  # [n, T]
    advantages: Tensor  # [n, T], whitened over the rollout
    returns: Tensor  # [n, T]

    def state(self) -> dict[str, Any]:
        """Return plain tensors, for a checkpoint between two updates on one rollout."""
        return super().state() | {"part": self.part} | {name: getattr(self, name) for name in OWN}

    @classmethod
    def of(cls, state: dict[str, Any], device: torch.device) -> Self:
        """Return what ``state`` describes, on ``device``; rewards stay on the CPU."""
        shared = vars(Experience.of(state, device))
        return cls(**shared, part=state["part"], **{name: state[name].to(device) for name in OWN})


def deal(indices: Sequence[int], num_parts: int, ranks: Ranks) -> dict[int, list[int]]:
    """Return which of this rank's rows each optimizer step of a pass learns from.

    Rows are dealt like cards, counted over all ranks: a step has the same rows however many ranks share them, and the
    same number up to one. Of a batch smaller than ``num_parts``, the last steps get none.
    """
    before = sum(ranks.gather(len(indices))[: ranks.rank])
    return {part: list(indices[(part - before) % num_parts :: num_parts]) for part in range(num_parts)}


def split_parts(
    rollout: Rollout, rewards: Rewards, *, sizes: Sequence[int], rows_at_once: int
) -> list[tuple[int, Experience]]:
    """Cut a rollout, which holds ``sizes[part]`` completions of each part in turn, into micro-batches of one part."""
    cut, start = [], 0
    for part, size in enumerate(sizes):
        stop = start + size
        if size:
            rows = rollout.rows(start, stop), rewards.rows(start, stop)
            cut += [(part, batch) for batch in split_experience(*rows, rows_at_once)]
        start = stop
    return cut


def judge(
    cut: Sequence[tuple[int, Experience]], values: Sequence[Tensor], *, gamma: float, lam: float, ranks: Ranks
) -> list[Trajectories]:
    """Return micro-batches with their advantages, which are whitened over all tokens of the rollout on every rank.

    Args:
        cut: Micro-batches and their parts.
        values: What the critic says of each micro-batch, [n, T].
        gamma: Discount of a later token's reward.
        lam: Of generalized advantage estimation.
        ranks: Who shares the rollout.
    """
    judged = []
    for (part, batch), old_values in zip(cut, values, strict=True):
        mask = batch.rollout.completion_mask  # [n, T]
        rewards = terminal_rewards(batch.rewards.total.to(mask.device), mask)
        advantages, returns = gae(rewards, old_values, mask, gamma=gamma, lam=lam)
        judged.append(
            Trajectories(**vars(batch), part=part, old_values=old_values, advantages=advantages, returns=returns)
        )
    mean, variance = token_moments(tokens_of(judged, "advantages"), ranks)
    for batch in judged:
        batch.advantages = whiten(batch.advantages, batch.rollout.completion_mask, mean=mean, variance=variance)
    return judged


def critic_metrics(batches: Sequence[Trajectories], ranks: Ranks) -> dict[str, float]:
    """Return what the critic expected of one rollout, what came, and how much of it the critic explains."""
    values, returns = tokens_of(batches, "old_values"), tokens_of(batches, "returns")
    return {
        "value/mean": token_moments(values, ranks)[0],
        "value/returns": token_moments(returns, ranks)[0],
        "explained_variance": explained_variance(values, returns, ranks),
    }


def tokens_of(batches: Sequence[Trajectories], name: str) -> Tensor:
    """Return a field [n, T] of every micro-batch at the tokens of its completions, [tokens]."""
    return torch.cat([getattr(batch, name)[batch.rollout.completion_mask.bool()] for batch in batches])
