"""PPO runs that end, or are killed, and go on equal those that never ended."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import torch

from tests.trainers.grpo_runs import metrics_of, state_of
from tests.trainers.ppo_runs import argv, run_ppo
from trainers.paths import REPOSITORY

RECORDED = {"sample_interval": 1, "epochs": 2}
PARTS = ("model", "optimizer", "old_actor", "critic", "critic_optimizer")


def assert_same(one: Path, other: Path) -> None:
    """Compare all that a run leaves, bit for bit."""
    first, second = state_of(one), state_of(other)
    for part in PARTS:
        for name, tensor in tensors(first[part]).items():
            assert torch.equal(tensor, tensors(second[part])[name]), (part, name)
    assert metrics_of(one) == metrics_of(other)
    assert (one / "samples.jsonl").read_text() == (other / "samples.jsonl").read_text()


def tensors(state: dict) -> dict:
    """Return the tensors of a model's or of an optimizer's state, by name."""
    if "param_groups" not in state:
        return state
    return {f"{key} {name}": moment for key, moments in state["state"].items() for name, moment in moments.items()}


def test_a_run_that_was_resumed_equals_one_that_was_not(start):
    """After 4 steps the next rollout comes from an old snapshot, after 8 from a new one, else it is half learned."""
    assert run_ppo("runs/whole", **RECORDED, max_steps=9) == 0
    for stop in (1, 3, 4, 8):
        assert run_ppo(f"runs/{stop}", **RECORDED, max_steps=stop) == 0
    shutil.rmtree(start / "start")
    for stop in (1, 3, 4, 8):
        assert run_ppo(f"runs/{stop}", **RECORDED, max_steps=9, from_resume=1) == 0
        assert [step for step, _ in metrics_of(start / str(stop))] == list(range(1, 10))
        assert_same(start / str(stop), start / "whole")


def test_an_early_stop_lasts_over_a_resume(start):
    stopping = {"early_stop_kl": 1e-9, "update_old_actor_freq": 1}
    assert run_ppo("runs/whole", **RECORDED, **stopping, max_steps=6) == 0
    assert run_ppo("runs/parts", **RECORDED, **stopping, max_steps=2) == 0
    assert run_ppo("runs/parts", **RECORDED, **stopping, max_steps=6, from_resume=1) == 0
    assert_same(start / "parts", start / "whole")


def test_a_run_that_was_killed_equals_one_that_was_not(start):
    flags = {"sample_interval": 1, "lr_schedule": "cosine", "save_interval": 1}
    process = subprocess.Popen(
        [sys.executable, "-m", "trainers", *argv("runs/parts", **flags)],
        cwd=REPOSITORY,
        text=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    while not process.stdout.readline().startswith("Epoch:[1/1](5/12)"):
        assert process.poll() is None
    process.kill()
    process.communicate()
    assert 4 <= state_of(start / "parts")["step"] < 12
    assert run_ppo("runs/parts", **flags, from_resume=1) == 0
    assert run_ppo("runs/whole", **flags) == 0
    assert [step for step, _ in metrics_of(start / "parts")] == list(range(1, 13))
    assert_same(start / "parts", start / "whole")


def test_resuming_at_the_end_of_an_epoch_or_of_the_run_does_no_step_twice(start):
    assert run_ppo("runs/1", sample_interval=1) == 0
    shutil.copytree(start / "1", start / "before")
    assert run_ppo("runs/1", sample_interval=1, from_resume=1) == 0
    assert_same(start / "1", start / "before")
    assert run_ppo("runs/1", **RECORDED, max_steps=13, from_resume=1) == 0
    assert run_ppo("runs/whole", **RECORDED, max_steps=13) == 0
    assert_same(start / "1", start / "whole")


def test_between_two_updates_on_one_rollout_a_resume_keeps_the_temperature(start, capfd):
    assert run_ppo("runs/1", max_steps=2) == 0
    assert run_ppo("runs/1", max_steps=3, from_resume=1, temperature=0.5) == 2
    assert capfd.readouterr().err == (
        "error: the checkpoint lies between two updates on one rollout, made with temperature 1.0, now 0.5; resume "
        "with what it was made with, or start a new job\n"
    )


def test_other_passes_are_refused_since_the_checkpoint_s_step_would_mean_other_rows(start, capfd):
    assert run_ppo("runs/1", max_steps=4) == 0
    assert run_ppo("runs/1", max_steps=8, from_resume=1, ppo_update_iters=3) == 2
    assert capfd.readouterr().err == (
        "error: the checkpoint was made with updates_per_batch 4, now 6; start a new job instead\n"
    )
