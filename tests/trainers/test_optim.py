import pytest
import torch

from trainers.configs import SFTConfig
from trainers.errors import Diverged
from trainers.optim import build_optimizer, finite_loss, learning_rate_at, optimizer_step
from trainers.ranks import ALONE

NO_SCALER = torch.amp.GradScaler("cpu", enabled=False)


def take_step(model, **changes):
    optimizer = build_optimizer(model, SFTConfig(learning_rate=0.5, weight_decay=0.0))
    return optimizer_step(
        optimizer,
        ranks=ALONE,
        step=7,
        **{"learning_rate": 0.1, "grad_clip": 1.0, "scaler": NO_SCALER, **changes},
    )


@pytest.mark.parametrize(("step", "expected"), [(50, 0.55e-3), (100, 0.1e-3), (25, 1e-3 * (0.1 + 0.45 * 1.70710678))])
def test_cosine_falls_to_a_tenth_at_the_last_step(step, expected):
    assert learning_rate_at(step, 100, SFTConfig(learning_rate=1e-3)) == pytest.approx(expected)


def test_constant_stays():
    config = SFTConfig(learning_rate=1e-3, lr_schedule="constant")
    assert [learning_rate_at(step, 10, config) for step in (1, 10)] == [1e-3, 1e-3]


def test_warm_up_rises_from_zero_in_optimizer_steps():
    config = SFTConfig(learning_rate=1e-3, lr_schedule="constant", warmup_steps=4)
    assert [learning_rate_at(step, 10, config) for step in (1, 2, 4, 5)] == [0.25e-3, 0.5e-3, 1e-3, 1e-3]


def test_the_first_adamw_step_is_the_given_learning_rate_long():
    model = torch.nn.Linear(1, 1, bias=False)
    model.weight.data.fill_(2.0)
    (3.0 * model.weight.sum()).backward()
    assert take_step(model, learning_rate=0.1) == pytest.approx(3.0)
    assert model.weight.item() == pytest.approx(2.0 - 0.1, abs=1e-6)
    assert model.weight.grad is None


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_gradient_that_is_not_finite_names_its_step_and_changes_nothing(bad):
    model = torch.nn.Linear(1, 1, bias=False)
    model.weight.data.fill_(2.0)
    model.weight.grad = torch.full((1, 1), bad)
    with pytest.raises(Diverged, match="gradient at step 7 is not finite"):
        take_step(model)
    assert model.weight.item() == 2.0


def test_the_scaler_of_fp16_skips_a_step_that_overflowed_and_lowers_its_scale():
    model = torch.nn.Linear(1, 1, bias=False)
    model.weight.data.fill_(2.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0, enabled=True)
    scaler.scale(model.weight.sum() * float("inf")).backward()
    assert take_step(model, scaler=scaler) == float("inf")
    assert (model.weight.item(), scaler.get_scale()) == (2.0, 32.0)


def test_a_loss_that_is_not_finite_names_its_step():
    assert finite_loss(torch.tensor(0.5), step=3) == 0.5
    with pytest.raises(Diverged, match="loss at step 3 is not finite"):
        finite_loss(torch.tensor(float("nan")), step=3)
