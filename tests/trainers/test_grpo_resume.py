"""GRPO runs that end and go on equal those that never ended."""

import pytest
from safetensors.torch import load_file, save_file

from tests.trainers.grpo_runs import metrics_of, run_grpo, same_weights


@pytest.mark.parametrize(("num_iterations", "stop_after"), [(1, 2), (2, 2), (2, 3)])
def test_a_run_that_was_resumed_equals_one_that_was_not(start, num_iterations, stop_after):
    """Report 38; a stop after an odd step lies between two updates on one rollout."""
    flags = {"num_iterations": num_iterations, "sample_interval": 1}
    assert run_grpo("runs/whole", **flags, max_steps=5) == 0
    assert run_grpo("runs/parts", **flags, max_steps=stop_after) == 0
    assert run_grpo("runs/parts", **flags, max_steps=5, from_resume=1) == 0
    whole, parts = start / "whole", start / "parts"
    assert [step for step, _ in metrics_of(parts)] == [1, 2, 3, 4, 5]
    assert metrics_of(parts) == metrics_of(whole)
    assert (parts / "samples.jsonl").read_text() == (whole / "samples.jsonl").read_text()
    assert same_weights(parts, whole)


def test_a_resumed_run_keeps_the_starting_weights_as_its_reference(start):
    assert run_grpo("runs/1", max_steps=3) == 0
    assert run_grpo("runs/1", max_steps=4, from_resume=1) == 0
    assert metrics_of(start / "1")[3][1]["kl"] > 0.0


def test_a_resumed_run_keeps_its_reference_when_the_file_it_started_from_has_changed(start):
    assert run_grpo("runs/whole", max_steps=3, beta=0.5) == 0
    assert run_grpo("runs/parts", max_steps=2, beta=0.5) == 0
    weights = start / "start" / "model" / "model.safetensors"
    save_file({name: value + 0.01 for name, value in load_file(weights).items()}, weights, metadata={"format": "pt"})
    assert run_grpo("runs/parts", max_steps=3, beta=0.5, from_resume=1) == 0
    assert metrics_of(start / "parts") == metrics_of(start / "whole")
    assert same_weights(start / "parts", start / "whole")


def test_a_run_that_never_reached_a_checkpoint_starts_again_with_the_weights_of_now_as_its_reference(start):
    assert run_grpo("runs/1", max_steps=1) == 0
    (start / "1" / "checkpoint" / "state.pt").unlink()
    weights = start / "start" / "model" / "model.safetensors"
    save_file({name: value + 0.01 for name, value in load_file(weights).items()}, weights, metadata={"format": "pt"})
    assert run_grpo("runs/1", max_steps=1, from_resume=1) == 0
    assert metrics_of(start / "1")[0][1]["kl"] == 0.0


@pytest.mark.parametrize(
    ("flag", "said"),
    [({"num_generations": 2}, "num_generations 4, now 2"), ({"temperature": 0.5}, "temperature 1.0, now 0.5")],
)
def test_between_two_updates_on_one_rollout_a_resume_keeps_how_it_was_sampled(start, capfd, flag, said):
    assert run_grpo("runs/1", num_iterations=2, max_steps=1) == 0
    assert run_grpo("runs/1", num_iterations=2, max_steps=2, from_resume=1, **flag) == 2
    assert capfd.readouterr().err == (
        f"error: the checkpoint lies between two updates on one rollout, made with {said}; resume with what it was "
        "made with, or start a new job\n"
    )


def test_after_the_last_update_on_a_rollout_a_resume_may_sample_otherwise(start):
    assert run_grpo("runs/1", num_iterations=2, max_steps=2) == 0
    assert run_grpo("runs/1", num_iterations=2, max_steps=3, from_resume=1, num_generations=2) == 0
