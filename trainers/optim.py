"""AdamW, the learning rate of each optimizer step, and the step itself."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from trainers.configs import TrainConfig
from trainers.errors import Diverged
from trainers.ranks import Ranks


def build_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.AdamW:
    """Return AdamW over every weight that is trained, as the scripts have it."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return torch.optim.AdamW(trained, lr=config.learning_rate, weight_decay=config.weight_decay, fused=True)


def learning_rate_at(step: int, total_steps: int, config: TrainConfig, *, peak: float | None = None) -> float:
    """Return the learning rate of optimizer step ``step``, counted from 1; ``peak`` stands in for ``learning_rate``.

    ``cosine`` falls from the peak to a tenth at the last step, as in the scripts; a warm-up scales either from zero.
    """
    warmup = min(1.0, step / config.warmup_steps) if config.warmup_steps else 1.0
    decay = 1.0 if config.lr_schedule == "constant" else 0.1 + 0.45 * (1 + math.cos(math.pi * step / total_steps))
    return (config.learning_rate if peak is None else peak) * warmup * decay


def optimizer_step(
    optimizer: torch.optim.Optimizer,
    *,
    learning_rate: float,
    grad_clip: float,
    scaler: torch.amp.GradScaler,
    ranks: Ranks,
    step: int,
    rate: str = "learning_rate",
) -> float:
    """Sum the gradients over the ranks, clip them, step, clear them, and return their norm before clipping.

    ``rate`` is the parameter that ``learning_rate`` comes from.

    Raises:
        Diverged: the gradient is not finite, unless ``scaler`` is there to skip such a step (fp16).
    """
    trained: Sequence[nn.Parameter] = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
    ranks.sum_gradients(trained)
    scaler.unscale_(optimizer)
    norm = float(nn.utils.clip_grad_norm_(trained, grad_clip))
    if not math.isfinite(norm) and not scaler.is_enabled():
        raise Diverged(f"the gradient at step {step} is not finite ({norm}); lower --{rate} or --grad_clip")
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    return norm


def finite_loss(loss: Tensor, *, step: int, rate: str = "learning_rate") -> float:
    """Return the loss as a number; ``rate`` is the parameter that its optimizer's learning rate comes from.

    Raises:
        Diverged: it is not finite.
    """
    value = float(loss)
    if not math.isfinite(value):
        raise Diverged(f"the loss at step {step} is not finite ({value}); lower --{rate}")
    return value
