"""Two processes that share every step do what one does with twice the batch, in every training type."""

from functools import partial
from pathlib import Path

import pytest

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
from tests.trainers.rank_runs import note_weights, result_of, run_ranks, said
from tests.trainers.rollout_replay import record_rollouts, replay_rollouts
from trainers.attempt import run_attempt
from trainers.cli import parse_command

pytestmark = pytest.mark.slow

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
    first, second = state_of(one), state_of(two)
    weights = max(
        float((first[part][name] - second[part][name]).abs().max())
        for part in ("model", "critic")
        if part in first
        for name in first[part]
    )
    logged = list(zip(metrics_of(one), metrics_of(two), strict=True))
    for (step, values), (other_step, others) in logged:
        assert (step, values.keys()) == (other_step, others.keys())
    values = {
        name: max(abs(mine[name] - theirs[name]) / max(1.0, abs(mine[name])) for (_, mine), (_, theirs) in logged)
        for name in logged[0][0][1]
    }
    return {"weights": weights, "metrics": max(values.values())}


def assert_alike(runs: Path) -> None:
    found = largest_differences(runs / "one", runs / "two")
    print(f"largest differences: {found}")  # `pytest -rP` shows it
    assert found["weights"] < 1e-5
    assert found["metrics"] < 1e-5
    first, second = ((runs / "two" / f"weights.{rank}").read_text() for rank in (0, 1))
    assert first == second


@pytest.mark.parametrize("kind", SUPERVISED)
def test_two_processes_are_one_with_twice_the_batch(kind, home, start):
    argv = SUPERVISED[kind]
    assert run_alone(argv("runs/one", **GENTLE, batch_size=4)) == 0
    assert run_ranks(home, argv("runs/two", **GENTLE, batch_size=2), prepare=note_weights) == [0, 0]
    assert_alike(start)
    result = result_of(start / "two")
    assert (result["processes"], result["steps"], result["total_steps"], result["exit_code"]) == (2, 6, 6, 0)


@pytest.mark.parametrize(
    ("flags", "alone", "together"),
    [
        ({}, {"batch_size": 2, "accumulation_steps": 2}, {"batch_size": 2}),
        ({"use_moe": 1, "max_steps": 2}, {"batch_size": 2, "accumulation_steps": 2}, {"batch_size": 2}),
        ({}, {"batch_size": 1, "accumulation_steps": 8}, {"batch_size": 1, "accumulation_steps": 4}),
    ],
    ids=["dense", "experts", "a tail of one micro-batch here and two there"],
)
def test_a_second_process_is_as_good_as_twice_the_accumulation(flags, alone, together, home, start):
    """The experts' balance is one of each micro-batch, so that theirs have to be the same: no smaller one last."""
    if "accumulation_steps" in together:  # 11 rows: the second step has 2 for the first process and 1 for the second
        with (start / "data.jsonl").open("a") as file:
            file.write((start / "data.jsonl").read_text().splitlines()[0] + "\n")
    assert run_alone(sft_runs.argv("runs/one", **GENTLE, **flags, **alone)) == 0
    assert run_ranks(home, sft_runs.argv("runs/two", **GENTLE, **flags, **together), prepare=note_weights) == [0, 0]
    assert_alike(start)


def test_rows_that_are_fewer_than_the_processes_wait_for_the_next_epoch(home, start):
    """Nine rows, eight a step: the ninth alone is no step for two."""
    lines = (start / "data.jsonl").read_text().splitlines()[:9]
    (start / "data.jsonl").write_text("\n".join(lines) + "\n")
    assert run_ranks(home, sft_runs.argv("runs/two", batch_size=4, epochs=3)) == [0, 0]
    assert [step for step, _ in metrics_of(start / "two")] == [1, 2, 3]


def test_two_processes_evaluate_and_stop_early_as_one(home, start):
    flags = {"eval_data_path": "runs/data.jsonl", "eval_interval": 1, "stop_at": "eval/greedy_accuracy>=0"}
    assert run_ranks(home, sft_runs.argv("runs/two", batch_size=2, **flags)) == [0, 0]
    assert result_of(start / "two")["stopped_early"]
    assert (start / "two" / "log.txt").read_text().count("evaluation at step") == 1


def test_the_main_process_alone_writes(home, start):
    assert run_ranks(home, sft_runs.argv("runs/two", batch_size=2)) == [0, 0]
    assert said(home, 0) == (start / "two" / "log.txt").read_text()
    assert said(home, 1) == ""
    steps = [step for step, _ in metrics_of(start / "two")]
    assert steps == [1, 2, 3, 4, 5, 6]
    assert sorted(path.name for path in (start / "two").iterdir()) == [
        "checkpoint",
        "config.json",
        "log.txt",
        "metrics.jsonl",
        "model",
        "result.json",
    ]


def grpo_argv(run_dir: str, **flags: object) -> list[str]:
    pairs = {"run_dir": run_dir, "device": "cpu", **grpo_runs.FLAGS, **flags}
    return ["grpo", *(part for name, value in pairs.items() for part in (f"--{name}", str(value)))]


ROLLED_OUT = {
    "grpo": ("grpo", grpo_argv, {"num_iterations": 2}),
    "cispo": ("grpo", grpo_argv, {"loss_type": "cispo", "num_iterations": 2}),
    "ppo": ("ppo", ppo_runs.argv, {}),
    "spo global": ("spo", spo_runs.argv, {"value_tracker": "global"}),
    "spo prompt": ("spo", spo_runs.argv, {"value_tracker": "prompt"}),
}


@pytest.mark.parametrize("case", ROLLED_OUT)
def test_two_processes_that_replay_the_rollouts_of_one_learn_the_same(case, home, start, monkeypatch):
    kind, argv, flags = ROLLED_OUT[case]
    flags = {**GENTLE, "max_steps": 7, **flags}
    record_rollouts(kind, home / "record.pt", monkeypatch)
    assert run_alone(argv("runs/one", **flags, **batch(kind, 4))) == 0
    prepare = partial(replay_and_note, kind=kind, path=home / "record.pt")
    assert run_ranks(home, argv("runs/two", **flags, **batch(kind, 2)), prepare=prepare) == [0, 0]
    assert_alike(start)


def batch(kind: str, size: int) -> dict[str, int]:
    """Return the flags of a batch, from which PPO learns in two optimizer steps."""
    return {"batch_size": size, "mini_batch_size": size // 2} if kind == "ppo" else {"batch_size": size}


def replay_and_note(rank: int, *, kind: str, path: Path) -> None:
    replay_rollouts(rank, kind=kind, path=path)
    note_weights(rank)
