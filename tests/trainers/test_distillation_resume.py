"""Distillations that end and go on equal those that never ended."""

import os
import shutil
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.trainers.distillation_runs import argv, run_distillation
from tests.trainers.grpo_runs import metrics_of, state_of
from trainers.paths import REPOSITORY

EVALUATED = {"eval_data_path": "runs/data.jsonl", "eval_interval": 2, "max_gen_len": 4}


def same_state(one, other):
    """Return whether weights and optimizer of two runs are equal bit for bit."""
    first, second = state_of(one), state_of(other)
    moments = [state["optimizer"]["state"] for state in (first, second)]
    return all(torch.equal(first["model"][name], second["model"][name]) for name in first["model"]) and all(
        torch.equal(moments[0][index][name], moments[1][index][name])
        for index in moments[0]
        for name in ("step", "exp_avg", "exp_avg_sq")
    )


@pytest.mark.parametrize("flags", [{}, {"student_use_moe": 1}, {"accumulation_steps": 2, "batch_size": 2}])
def test_a_run_that_was_resumed_equals_one_that_was_not(start, flags):
    assert run_distillation("runs/whole", **flags, **EVALUATED) == 0
    assert run_distillation("runs/parts", **flags, **EVALUATED, max_steps=4) == 0
    assert run_distillation("runs/parts", **flags, **EVALUATED, from_resume=1) == 0
    assert metrics_of(start / "parts") == metrics_of(start / "whole")
    assert (start / "parts" / "samples.jsonl").read_text() == (start / "whole" / "samples.jsonl").read_text()
    assert same_state(start / "parts", start / "whole")


def test_a_run_that_was_killed_and_resumed_equals_one_that_was_not(start):
    flags = {"epochs": 8, "save_interval": 2, "lr_schedule": "cosine"}
    process = subprocess.Popen(
        [sys.executable, "-m", "trainers", *argv("runs/parts", **flags)],
        cwd=REPOSITORY,
        text=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())},
    )
    while not process.stdout.readline().startswith("Epoch:[2/"):
        assert process.poll() is None
    process.kill()
    process.communicate()
    assert not (start / "parts" / "result.json").exists()
    assert run_distillation("runs/parts", **flags, from_resume=1) == 0
    assert run_distillation("runs/whole", **flags) == 0
    assert [step for step, _ in metrics_of(start / "parts")] == list(range(1, 25))
    assert metrics_of(start / "parts") == metrics_of(start / "whole")
    assert same_state(start / "parts", start / "whole")


@pytest.mark.parametrize("steps", [3, 6])
def test_a_resume_at_the_end_of_an_epoch_or_of_the_run_does_nothing_twice(start, steps):
    assert run_distillation("runs/1", max_steps=steps) == 0
    shutil.copytree(start / "1", start / "before")
    assert run_distillation("runs/1", max_steps=steps, from_resume=1) == 0
    assert [step for step, _ in metrics_of(start / "1")] == list(range(1, steps + 1))
    assert same_state(start / "1", start / "before")


def test_a_resume_needs_the_teacher_but_not_the_weights_that_the_student_started_from(start, capfd):
    shutil.copytree(start / "start" / "model", start / "student")
    assert run_distillation("runs/1", init_path="runs/student", max_steps=2) == 0
    shutil.rmtree(start / "student")
    assert run_distillation("runs/1", init_path="runs/student", max_steps=3, from_resume=1) == 0
    shutil.rmtree(start / "start")
    assert run_distillation("runs/1", init_path="runs/student", max_steps=4, from_resume=1) == 2
    assert capfd.readouterr().err.startswith(
        f"error: the teacher, which every attempt reads anew: no model in {start}/start/model"
    )


def test_a_resume_with_another_teacher_is_refused_and_one_that_moved_is_not(start, capfd):
    assert run_distillation("runs/1", max_steps=2) == 0
    shutil.move(start / "start", start / "moved")
    assert run_distillation("runs/1", teacher_path="runs/moved/model", max_steps=3, from_resume=1) == 0
    weights = start / "moved" / "model" / "model.safetensors"
    save_file({name: value + 0.01 for name, value in load_file(weights).items()}, weights, metadata={"format": "pt"})
    capfd.readouterr()
    assert run_distillation("runs/1", teacher_path="runs/moved/model", max_steps=4, from_resume=1) == 2
    assert capfd.readouterr().err == (
        "error: the teacher's weights have changed since the checkpoint; bring the old ones back, or start a new job\n"
    )
