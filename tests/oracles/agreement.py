"""How far two computations of one loss lie apart, in value and in the gradient of every weight."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

Weights = Mapping[str, Tensor]


@dataclass(frozen=True)
class Agreement:
    """The oracle's numbers, and the largest differences of ours from them."""

    value: float  # of the oracle; for tensors its largest element
    value_difference: float
    gradient: float = 0.0  # the largest element of the oracle's; 0 where none is taken
    gradient_difference: float = 0.0


def compare(ours: Tensor, our_weights: Weights, theirs: Tensor, their_weights: Weights) -> Agreement:
    """Return the agreement of two losses, each with the weights it depends on, under the same names."""
    assert our_weights.keys() == their_weights.keys()
    our_gradients, their_gradients = gradients_of(ours, our_weights), gradients_of(theirs, their_weights)
    return Agreement(
        value=theirs.item(),
        value_difference=abs(ours.item() - theirs.item()),
        gradient=max(largest_of(gradient) for gradient in their_gradients),
        gradient_difference=max(
            largest_of(mine - other) for mine, other in zip(our_gradients, their_gradients, strict=True)
        ),
    )


def gradients_of(loss: Tensor, weights: Weights) -> list[Tensor]:
    """Return the gradient of ``loss`` for each of ``weights``."""
    return list(torch.autograd.grad(loss, list(weights.values())))


def compare_tensors(ours: Tensor, theirs: Tensor, leaf: Tensor | None = None) -> Agreement:
    """Return the agreement of two tensors of one shape; of the gradients too where both depend on ``leaf``.

    Each element has a weight of its own in the sum that is differentiated, so that none makes up for another.
    """
    assert ours.shape == theirs.shape
    plain = Agreement(value=largest_of(theirs), value_difference=largest_of(ours - theirs))
    if leaf is None:
        return plain
    weight = torch.linspace(0.5, 1.5, ours.numel()).view_as(ours)
    summed = compare((ours * weight).sum(), {"leaf": leaf}, (theirs * weight).sum(), {"leaf": leaf})
    return Agreement(plain.value, plain.value_difference, summed.gradient, summed.gradient_difference)


def largest_of(tensor: Tensor) -> float:
    return tensor.detach().abs().max().item()
