"""From the reward of a whole completion to the advantage of each of its tokens: pure functions of tensors."""

import math

import torch
from torch import Tensor

from trainers.ranks import ALONE, Ranks


def terminal_rewards(rewards: Tensor, completion_mask: Tensor) -> Tensor:
    """Return each completion's reward at its last token, 0 elsewhere, [N, T] from [N]; 0 where there is no token."""
    last = (completion_mask.sum(-1, keepdim=True) - 1).clamp(min=0)  # [N, 1]
    per_token = torch.zeros(completion_mask.shape, device=rewards.device)
    return per_token.scatter(1, last, rewards[:, None].float()) * completion_mask


def gae(rewards: Tensor, values: Tensor, mask: Tensor, *, gamma: float, lam: float) -> tuple[Tensor, Tensor]:
    """Return generalized advantage estimates and the returns that the values are to predict.

    Args:
        rewards: Of each token, [N, T].
        values: What the critic expects from each token on, before it is written, [N, T].
        mask: 1 on the tokens of a completion, [N, T]; what others hold is never looked at.
        gamma: Discount of a later token's reward.
        lam: 0 trusts the next value alone, 1 the rewards alone.

    Returns:
        Advantages and returns, both [N, T], 0 outside the mask.

    Source: Schulman et al., arXiv 1506.02438, equation 16.
    """
    real = mask.bool()
    next_value = next_advantage = torch.zeros_like(values[:, 0])  # [N]; nothing follows the last token
    advantages = torch.zeros_like(values)  # [N, T]
    for t in reversed(range(values.shape[1])):
        delta = rewards[:, t] + gamma * next_value - values[:, t]
        advantage = delta + gamma * lam * next_advantage
        next_value = torch.where(real[:, t], values[:, t], next_value)
        next_advantage = torch.where(real[:, t], advantage, next_advantage)
        advantages[:, t] = next_advantage
    advantages = advantages.masked_fill(~real, 0.0)
    return advantages, (advantages + values).masked_fill(~real, 0.0)


def token_moments(values: Tensor, ranks: Ranks = ALONE) -> tuple[float, float]:
    """Return mean and population variance over the tokens of every rank, [n] here; 0 and 0 of none.

    In float64, in which the mean of equal float32 numbers is that number, and their variance exactly 0.
    """
    values = values.double()
    count = max(float(ranks.sum(len(values))), 1.0)
    mean = float(ranks.sum(values.sum())) / count
    return mean, float(ranks.sum((values - mean).square().sum())) / count


def whiten(advantages: Tensor, mask: Tensor, *, mean: float, variance: float) -> Tensor:
    """Return advantages [N, T] from their mean, in standard deviations, 0 outside the mask.

    Nearly equal advantages are not blown up to unit size: the deviation counts as at least 1e-4.
    """
    return (advantages - mean) / math.sqrt(variance + 1e-8) * mask


def explained_variance(values: Tensor, returns: Tensor, ranks: Ranks = ALONE) -> float:
    """Return which share of the returns' variance the values predict, both [n]: 1 all, 0 or less none."""
    _, variance = token_moments(returns, ranks)
    _, residual = token_moments(returns - values, ranks)
    return 1 - residual / variance if variance > 1e-8 else 0.0
