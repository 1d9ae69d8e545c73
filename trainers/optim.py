"""AdamW, the learning rate of each optimizer step, and the step itself."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from trainers.configs import TrainConfig
from trainers.errors import Diverged


def build_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.AdamW:
    """Return AdamW over every weight, as the scripts have it."""
    return torch.optim.AdamW(model.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay, fused=True)


def learning_rate_at(step: int, total_steps: int, config: TrainConfig) -> float:
    """Return the learning rate of optimizer step ``step``, counted from 1.

    ``cosine`` falls from the peak to a tenth at the last step, as in the scripts; a warm-up scales either from zero.
    """
    warmup = min(1.0, step / config.warmup_steps) if config.warmup_steps else 1.0
    decay = 1.0 if config.lr_schedule == "constant" else 0.1 + 0.45 * (1 + math.cos(math.pi * step / total_steps))
    return config.learning_rate * warmup * decay


def optimizer_step(
    optimizer: torch.optim.Optimizer,
    parameters: Iterable[nn.Parameter],
    *,
    learning_rate: float,
    grad_clip: float,
    scaler: torch.amp.GradScaler,
    step: int,
) -> float:
    """Clip the gradients, step, clear them, and return their norm before clipping.

    Raises:
        Diverged: the gradient is not finite, unless ``scaler`` is there to skip such a step (fp16).
    """
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
    scaler.unscale_(optimizer)
    norm = float(nn.utils.clip_grad_norm_(parameters, grad_clip))
    if not math.isfinite(norm) and not scaler.is_enabled():
        raise Diverged(f"the gradient at step {step} is not finite ({norm}); lower --learning_rate or --grad_clip")
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    return norm


def finite_loss(loss: Tensor, *, step: int) -> float:
    """Return the loss as a number.

    Raises:
        Diverged: it is not finite.
    """
    value = float(loss)
    if not math.isfinite(value):
        raise Diverged(f"the loss at step {step} is not finite ({value}); lower --learning_rate")
    return value
