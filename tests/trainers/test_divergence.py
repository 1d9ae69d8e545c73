"""A loss that explodes ends the run with its step, and with a checkpoint from before it."""

import json
from pathlib import Path

import pytest
import torch

from tests.trainers.grpo_runs import state_of
from tests.trainers.sft_runs import run_sft
from trainers.runtime import Run


def result_of(home: Path) -> dict:
    return json.loads((home / "runs" / "1" / "result.json").read_text())


@pytest.mark.parametrize(("save_interval", "kept"), [(1, 4), (3, 3), (5, None)])
def test_a_loss_that_explodes_ends_the_run_and_keeps_the_checkpoint_before_it(
    home, capfd, monkeypatch, save_interval, kept
):
    begin_step = Run.begin_step

    def begin_and_overflow(run: Run) -> None:
        begin_step(run)
        if run.step == 5:
            with torch.no_grad():
                next(run._parts["model"].parameters()).fill_(torch.inf)

    monkeypatch.setattr(Run, "begin_step", begin_and_overflow)
    assert run_sft("runs/1", save_interval=save_interval) == 1
    reason = "the loss at step 5 is not finite (nan); lower --learning_rate"
    assert capfd.readouterr().err == f"error: {reason}\n"
    result = result_of(home)
    assert (result["error"], result["steps"], result["checkpoint_step"]) == (reason, 5, kept)
    assert not (home / "runs" / "1" / "model").exists()
    if kept is not None:
        state = state_of(home / "runs" / "1")
        assert state["step"] == kept
        assert all(bool(value.isfinite().all()) for value in state["model"].values())


def test_a_gradient_that_is_not_finite_changes_no_weight(home, monkeypatch):
    backward = torch.Tensor.backward
    calls = []

    def poisoned(loss: torch.Tensor) -> None:
        calls.append(loss)
        backward(loss * float("inf") if len(calls) == 3 else loss)

    monkeypatch.setattr(torch.Tensor, "backward", poisoned)
    assert run_sft("runs/1", save_interval=1) == 1
    result = result_of(home)
    assert result["error"].startswith("the gradient at step 3 is not finite (")
    assert (result["steps"], result["checkpoint_step"]) == (3, 2)
