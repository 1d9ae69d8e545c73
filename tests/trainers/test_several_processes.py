"""Two processes that share every step do what one does with twice the batch, in every training type."""

import json
from functools import partial
from pathlib import Path

import pytest
import torch

from tests.trainers import (
    distillation_runs,
    grpo_runs,
    lora_runs,
    pair_runs,
    ppo_runs,
    pretrain_runs,
    sft_runs,
    spo_runs,
)
from tests.trainers.grpo_runs import metrics_of, save_start, state_of
from tests.trainers.rank_runs import note_weights, result_of, run_ranks
from tests.trainers.rollout_replay import record_rollouts, replay_rollouts
from trainers.attempt import run_attempt
from trainers.cli import parse_command

GENTLE = {"learning_rate": 0.0003, "log_interval": 1}  # AdamW makes a step of any gradient, also of a rounding error
SUPERVISED = {
    "pretrain": pretrain_runs.argv,
    "sft": sft_runs.argv,
    "lora": lora_runs.argv,
    "dpo": partial(pair_runs.argv, "dpo"),
    "reward": partial(pair_runs.argv, "reward"),
    "distillation": distillation_runs.argv,
}


@pytest.fixture
def start(home: Path) -> Path:
    """Return a state folder with starting weights, and data for every type."""
    save_start(home)
    pretrain_runs.write_texts(home / "runs" / "texts.jsonl", pretrain_runs.TEXTS)
    pair_runs.write_pairs(home / "runs" / "pairs.jsonl", pair_runs.ANSWERED)
    return home / "runs"


def run_alone(argv: list[str]) -> int:
    return run_attempt(parse_command(argv))


def largest_differences(one: Path, two: Path) -> dict[str, float]:
    """Return how far two runs are apart: in weights, and in what they logged, relative to its size above 1."""
    first, second = state_of(one)["model"], state_of(two)["model"]
    weights = max(float((first[name] - second[name]).abs().max()) for name in first)
    logged = list(zip(metrics_of(one), metrics_of(two), strict=True))
    for (step, values), (other_step, others) in logged:
        assert (step, values.keys()) == (other_step, others.keys())
    values = {
        name: max(abs(mine[name] - theirs[name]) / max(1.0, abs(mine[name])) for (_, mine), (_, theirs) in logged)
        for name in logged[0][0][1]
    }
    return {"weights": weights, "metrics": max(values.values())}


def assert_alike(runs: Path, record_property) -> None:
    found = largest_differences(runs / "one", runs / "two")
    record_property("largest_differences", json.dumps(found))
    assert found["weights"] < 1e-5
    assert found["metrics"] < 1e-5
    first, second = ((runs / "two" / f"weights.{rank}").read_text() for rank in (0, 1))
    assert first == second


@pytest.mark.parametrize("kind", SUPERVISED)
def test_two_processes_are_one_with_twice_the_batch(kind, home, start, record_property):
    argv = SUPERVISED[kind]
    assert run_alone(argv("runs/one", **GENTLE, batch_size=4)) == 0
    assert run_ranks(home, argv("runs/two", **GENTLE, batch_size=2), prepare=note_weights) == [0, 0]
    assert_alike(start, record_property)
    result = result_of(start / "two")
    assert (result["processes"], result["steps"], result["total_steps"], result["exit_code"]) == (2, 6, 6, 0)
