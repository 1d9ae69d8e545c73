"""Pure pieces of policy losses, shared by every algorithm that learns from its own completions."""

import torch
from torch import Tensor


def per_token_kl(per_token_logps: Tensor, ref_per_token_logps: Tensor) -> Tensor:
    """Return the k3 estimate of the KL divergence from the reference, never negative, [N, T].

    Source: Schulman, Approximating KL Divergence, http://joschu.net/blog/kl-approx.html.
    """
    difference = ref_per_token_logps - per_token_logps
    return difference.exp() - difference - 1


def clipped_loss(per_token_logps: Tensor, old_per_token_logps: Tensor, advantages: Tensor, *, epsilon: float) -> Tensor:
    """Return PPO's clipped loss of each token, as GRPO uses it.

    Args:
        per_token_logps: Of the policy that is trained, [N, T].
        old_per_token_logps: Of the policy that sampled, no gradient, [N, T].
        advantages: [N], or [N, T] where tokens differ.
        epsilon: The ratio counts within 1 - epsilon .. 1 + epsilon.

    Source: PPO, arXiv 1707.06347, equation 7; DeepSeekMath, arXiv 2402.03300, equation 3.
    """
    ratio = (per_token_logps - old_per_token_logps).exp()  # [N, T]
    clipped = ratio.clamp(1 - epsilon, 1 + epsilon)
    per_token = advantages if advantages.dim() == 2 else advantages[:, None]
    return -torch.min(ratio * per_token, clipped * per_token)


@torch.no_grad()
def clipped_tokens(
    per_token_logps: Tensor, old_per_token_logps: Tensor, advantages: Tensor, *, epsilon: float
) -> Tensor:
    """Return 1 where ``clipped_loss`` holds a token's loss back, [N, T]; ``advantages`` [N, 1] or [N, T]."""
    ratio = (per_token_logps - old_per_token_logps).exp()  # [N, T]
    return ((advantages > 0) & (ratio > 1 + epsilon) | (advantages < 0) & (ratio < 1 - epsilon)).float()


def cispo_loss(
    per_token_logps: Tensor, old_per_token_logps: Tensor, advantages: Tensor, *, epsilon_high: float
) -> Tensor:
    """Return the loss of each token whose capped ratio is a weight without gradient, so that no token is cut off.

    Shapes as in ``clipped_loss``; ``epsilon_high`` is the largest weight itself, not an offset from 1.

    Source: MiniMax-M1, arXiv 2506.13585, equation 4.
    """
    weight = (per_token_logps - old_per_token_logps).exp().clamp(max=epsilon_high).detach()  # [N, T]
    return -weight * advantages[:, None] * per_token_logps


def sequence_mean(per_token: Tensor, completion_mask: Tensor) -> Tensor:
    """Return each row's mean over its own tokens, 0 for a row without any, [N] from [N, T]."""
    mask = completion_mask.to(per_token.dtype)
    return (per_token * mask).sum(-1) / mask.sum(-1).clamp(min=1)
