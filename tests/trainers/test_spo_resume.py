"""SPO runs that end and go on equal those that never ended."""

import os
import shutil
import subprocess
import sys

import pytest
import torch

from tests.trainers.grpo_runs import metrics_of, same_weights, state_of
from tests.trainers.spo_runs import argv, run_spo
from trainers.paths import REPOSITORY
from trainers.runtime import Run

EVERY_STEP = {"sample_interval": 1, "save_interval": 1}


def same(one: object, other: object) -> bool:
    """Return whether two nested states are equal to the bit."""
    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and torch.equal(one, other)
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    return one == other


def assert_same_run(one, other):
    assert [step for step, _ in metrics_of(one)] == [step for step, _ in metrics_of(other)]
    assert metrics_of(one) == metrics_of(other)
    assert (one / "samples.jsonl").read_text() == (other / "samples.jsonl").read_text()
    for name in ("model", "optimizer", "tracker"):
        assert same(state_of(one)[name], state_of(other)[name]), name


@pytest.mark.parametrize(
    ("value_tracker", "num_iterations", "stop_after"),
    [("global", 1, 2), ("prompt", 1, 2), ("global", 2, 3), ("prompt", 2, 3)],
)
def test_a_run_that_was_resumed_equals_one_that_was_not_even_without_its_starting_weights(
    start, value_tracker, num_iterations, stop_after
):
    """An odd stop with two updates per rollout lies between them; step 4 or 5 revisits prompts."""
    flags = {**EVERY_STEP, "value_tracker": value_tracker, "num_iterations": num_iterations, "epochs": 2}
    assert run_spo("runs/whole", **flags, max_steps=5) == 0
    assert run_spo("runs/parts", **flags, max_steps=stop_after) == 0
    shutil.rmtree(start / "start")
    assert run_spo("runs/parts", **flags, max_steps=5, from_resume=1) == 0
    assert_same_run(start / "parts", start / "whole")


def test_a_killed_run_goes_on_as_if_it_had_not_been(start):
    flags = {**EVERY_STEP, "value_tracker": "prompt"}
    process = subprocess.Popen(
        [sys.executable, "-m", "trainers", *argv("runs/killed", **flags, epochs=100)],
        cwd=REPOSITORY,
        text=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "NIGHTSHIFT_HOME": str(start.parent), "OMP_NUM_THREADS": "1"},
    )
    while not (line := process.stdout.readline()).startswith("Epoch:[1/100](2/3)"):
        assert line, "it ended before its second step"
    process.kill()
    process.communicate()
    assert not (start / "killed" / "result.json").exists()
    saved = state_of(start / "killed")["step"]
    assert saved >= 1
    epochs = saved // 3 + 2
    assert run_spo("runs/killed", **flags, epochs=epochs, from_resume=1) == 0
    assert run_spo("runs/whole", **flags, epochs=epochs) == 0
    assert_same_run(start / "killed", start / "whole")


def test_a_stop_during_the_offline_estimate_keeps_what_is_estimated(start, monkeypatch):
    """One prompt at a time; the request comes with the third of ten."""
    monkeypatch.setattr("trainers.offline_estimate.COMPLETIONS_AT_ONCE", 2)
    flags = {**EVERY_STEP, "value_tracker": "prompt", "max_steps": 2}
    assert run_spo("runs/whole", **flags) == 0
    stop_after_estimates(monkeypatch, 3)
    assert run_spo("runs/parts", **flags) == 3
    assert state_of(start / "parts")["step"] == 0
    assert state_of(start / "parts")["tracker"]["estimated"] == 3
    assert run_spo("runs/parts", **flags, from_resume=1) == 0
    assert_same_run(start / "parts", start / "whole")


def stop_after_estimates(monkeypatch, count):
    """Ask the run to end, as a signal does, once ``count`` chunks are estimated."""
    calls, counted = [], Run.count

    def count_and_stop(run, name, value):
        calls.append(name)
        run.stop_requested = len(calls) == count
        return counted(run, name, value)

    monkeypatch.setattr(Run, "count", count_and_stop)


@pytest.mark.parametrize("value_tracker", ["global", "prompt"])
def test_resuming_at_the_end_of_an_epoch_or_of_the_run_takes_no_step_twice(start, value_tracker):
    flags = {**EVERY_STEP, "value_tracker": value_tracker}
    assert run_spo("runs/1", **flags, epochs=1) == 0
    ended = state_of(start / "1")
    shutil.copytree(start / "1", start / "copy")
    assert run_spo("runs/1", **flags, epochs=1, from_resume=1) == 0
    assert same(state_of(start / "1"), ended)
    assert same_weights(start / "1", start / "copy")
    assert run_spo("runs/1", **flags, epochs=2, from_resume=1) == 0
    assert [step for step, _ in metrics_of(start / "1")] == [1, 2, 3, 4, 5, 6]


def test_a_checkpoint_of_the_other_tracker_is_refused_in_one_line(start, capfd):
    assert run_spo("runs/1", max_steps=1) == 0
    assert run_spo("runs/1", max_steps=2, value_tracker="prompt", from_resume=1) == 2
    error = capfd.readouterr().err
    assert error.count("\n") == 1
    assert "the checkpoint's tracker has another shape" in error
    assert "it was made with another --value_tracker" in error
