"""The critic of PPO: a copy of the starting policy that says, before each token, which return it expects from there.

The policy's output layer makes way for a value head that starts at zero, so the first advantages are the returns
themselves. All else is the policy's own forward pass: the last norm is applied once, and a mixture of experts brings
its balancing loss.
"""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from trainers.configs import PPOConfig
from trainers.experience import TokenSums
from trainers.logps import position_ids_of
from trainers.models import moe_loss, moe_options
from trainers.rollout import Rollout
from trainers.runtime import Run
from trainers.trajectories import Trajectories


class ValueHead(nn.Linear):
    """One number for each position, in fp32 under autocast, too."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__(hidden_size, 1)
        nn.init.zeros_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return values, [..., 1] from [..., hidden_size]."""
        with torch.autocast(hidden.device.type, enabled=False):
            return super().forward(hidden.float())


def build_critic(policy: PreTrainedModel) -> PreTrainedModel:
    """Return a trainable copy of ``policy`` whose logits are values, [B, S, 1]."""
    critic = copy.deepcopy(policy)
    head = ValueHead(critic.config.get_text_config().hidden_size)
    critic.set_output_embeddings(head.to(policy.device))
    return critic


def completion_values(critic: Any, rollout: Rollout) -> tuple[Tensor, Tensor | float]:
    """Return the value of each prefix that a completion's token follows, and the balancing loss of the experts.

    Returns:
        Values, [N, T], 0 after the end of a completion; the weighted load balance, 0 for a dense model.
    """
    length = rollout.completion_ids.shape[1]  # T
    output = critic(
        input_ids=rollout.sequence_ids,
        attention_mask=rollout.attention_mask,
        position_ids=position_ids_of(rollout.attention_mask),
        logits_to_keep=length + 1,
        use_cache=False,
        **moe_options(critic),
    )
    values = output.logits[:, -length - 1 : -1, 0].float()  # [N, T]
    return values.masked_fill(rollout.completion_mask == 0, 0.0), moe_loss(critic, output)


def value_loss(values: Tensor, old_values: Tensor, returns: Tensor, *, cliprange_value: float) -> Tensor:
    """Return the critic's loss of each token, [N, T]: the worse of the value and of the value kept near the old one.

    Args:
        values: Of the critic that is trained, [N, T].
        old_values: Of the critic when the completions were sampled, no gradient, [N, T].
        returns: What the values are to predict, [N, T].
        cliprange_value: How far a value may move before it stops counting.

    Source: PPO's reference code, https://github.com/openai/baselines, ppo2/model.py.
    """
    clipped = old_values + (values - old_values).clamp(-cliprange_value, cliprange_value)
    return 0.5 * torch.max((values - returns).square(), (clipped - returns).square())


@torch.no_grad()
def clipped_values(values: Tensor, old_values: Tensor, returns: Tensor, *, cliprange_value: float) -> Tensor:
    """Return 1 where the clip of ``value_loss`` holds a token's value back, [N, T]."""
    change = values - old_values
    clipped = old_values + change.clamp(-cliprange_value, cliprange_value)
    further_off = (clipped - returns).square() > (values - returns).square()
    return (further_off & (change.abs() > cliprange_value)).float()  # within it they differ by rounding


def critic_gradients(
    forward: Any,
    batches: Sequence[Trajectories],
    config: PPOConfig,
    run: Run,
    sums: TokenSums,
    num_tokens: Tensor,
    num_batches: Tensor,
) -> Tensor:
    """Add the gradients of this rank's part of an optimizer step, and return its part of the unweighted value loss."""
    total_loss = torch.zeros((), device=run.device)
    clip = config.cliprange_value
    for batch in batches:
        mask = batch.rollout.completion_mask  # [n, T]
        with run.autocast():
            values, aux_loss = completion_values(forward, batch.rollout)  # [n, T]
        per_token_loss = value_loss(values, batch.old_values, batch.returns, cliprange_value=clip)  # [n, T]
        loss = (per_token_loss * mask).sum() / num_tokens
        run.scaler.scale(config.vf_coef * loss + aux_loss / num_batches).backward()
        total_loss += loss.detach()
        held = clipped_values(values, batch.old_values, batch.returns, cliprange_value=clip)
        sums.add(mask, value_clip_ratio=held)
    return total_loss
