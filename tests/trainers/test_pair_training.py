"""What DPO and reward models have in common: how a step is cut, what is left out, and how a run goes on."""

import json
import os
import shutil
import subprocess
import sys

import pytest
import torch

from tests.trainers.grpo_runs import first_gradient, metrics_of, same_weights, save_start, state_of
from tests.trainers.pair_runs import ANSWERED, TOO_LONG, argv, run_pairs, share_pad_with_eos, write_pairs
from trainers.paths import REPOSITORY


@pytest.fixture
def one_thread():
    """Compute in the order that a process with one thread does."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


both = pytest.mark.parametrize("kind", ["dpo", "reward"])


@both
@pytest.mark.parametrize(
    "cut", [{"batch_size": 2, "accumulation_steps": 2}, {"batch_size": 1, "accumulation_steps": 4}]
)
def test_how_a_step_is_cut_changes_neither_loss_nor_gradient(pairs, kind, cut):
    """Reports 9 and 14; each micro-batch has a padding of its own."""
    write_pairs(pairs / "pairs.jsonl", [("1", "2", "3"), ("12+30", "a longer answer", "x"), *ANSWERED[:2]])
    assert run_pairs(kind, "runs/whole", max_steps=1) == 0
    assert run_pairs(kind, "runs/cut", max_steps=1, **cut) == 0
    (_, whole), (_, parts) = metrics_of(pairs / "whole")[0], metrics_of(pairs / "cut")[0]
    assert parts == pytest.approx(whole, rel=1e-5, abs=1e-5)
    torch.testing.assert_close(first_gradient(pairs / "cut"), first_gradient(pairs / "whole"), atol=1e-5, rtol=0)


@both
def test_a_pair_whose_question_fills_the_length_is_left_out_and_told_once(pairs, kind):
    write_pairs(pairs / "pairs.jsonl", ANSWERED[:3])
    assert run_pairs(kind, "runs/without", max_steps=1) == 0
    write_pairs(pairs / "pairs.jsonl", [*ANSWERED[:3], TOO_LONG])
    assert run_pairs(kind, "runs/with", epochs=2) == 0
    with_it, without = metrics_of(pairs / "with"), metrics_of(pairs / "without")
    for name in set(without[0][1]) - {"num_tokens"}:
        assert with_it[0][1][name] == pytest.approx(without[0][1][name], rel=1e-4, abs=1e-6)
    log = (pairs / "with" / "log.txt").read_text()
    assert log.count("are left out") == 1
    assert (
        "warning: 1 of the 4 pairs of step 1 are cut by --max_seq_len 64 before the assistant speaks, and are left out"
    ) in log


@both
def test_a_step_of_such_pairs_alone_has_loss_and_gradient_0(pairs, kind):
    """Report 11: never NaN."""
    write_pairs(pairs / "pairs.jsonl", [TOO_LONG, TOO_LONG])
    assert run_pairs(kind, "runs/1", max_steps=1) == 0
    ((_, values),) = metrics_of(pairs / "1")
    assert (values["loss"], values["grad_norm"]) == (0.0, 0.0)
    assert first_gradient(pairs / "1").abs().max() == 0.0


@both
def test_strict_stops_at_such_a_pair(pairs, kind, capfd):
    write_pairs(pairs / "pairs.jsonl", [TOO_LONG])
    assert run_pairs(kind, "runs/1", strict=1) == 2
    assert "pairs.jsonl, row 1: 'chosen' keeps no token to learn within --max_seq_len 64" in capfd.readouterr().err


@both
@pytest.mark.parametrize("start_kind", ["qwen3", "gpt2", "moe", "pad is eos"])
def test_a_run_that_was_resumed_without_its_starting_weights_equals_one_that_was_not(home, kind, start_kind):
    """Report 38; two accumulated micro-batches a step."""
    save_start(home, "qwen3" if start_kind == "pad is eos" else start_kind)
    if start_kind == "pad is eos":
        share_pad_with_eos(home / "runs" / "start" / "model")
    write_pairs(home / "runs" / "pairs.jsonl", ANSWERED)
    flags = {"batch_size": 2, "accumulation_steps": 2}
    whole, parts = home / "runs" / "whole", home / "runs" / "parts"
    assert run_pairs(kind, "runs/whole", **flags, max_steps=5) == 0
    assert run_pairs(kind, "runs/parts", **flags, max_steps=2) == 0
    shutil.rmtree(home / "runs" / "start")
    assert run_pairs(kind, "runs/parts", **flags, max_steps=5, from_resume=1) == 0
    assert [step for step, _ in metrics_of(parts)] == [1, 2, 3, 4, 5]
    assert metrics_of(parts) == metrics_of(whole)
    assert same_weights(parts, whole)
    assert (parts / "model" / "model.safetensors").read_bytes() == (whole / "model" / "model.safetensors").read_bytes()


@both
@pytest.mark.parametrize("last", [3, 6], ids=["end of an epoch", "end of the run"])
def test_a_resume_at_an_end_does_no_step_twice(pairs, kind, last):
    assert run_pairs(kind, "runs/1", max_steps=last) == 0
    before = state_of(pairs / "1")["model"]
    assert run_pairs(kind, "runs/1", max_steps=last, from_resume=1) == 0
    after = state_of(pairs / "1")["model"]
    assert all(torch.equal(after[name], before[name]) for name in before)
    assert [step for step, _ in metrics_of(pairs / "1")] == list(range(1, last + 1))


@both
def test_a_killed_run_ends_as_one_that_was_not(pairs, kind, one_thread):
    process = subprocess.Popen(
        [sys.executable, "-m", "trainers", *argv(kind, "runs/killed", epochs=500, save_interval=2)],
        cwd=REPOSITORY,
        text=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    while not process.stdout.readline().startswith("Epoch:[1/500](3/"):
        assert process.poll() is None
    process.kill()
    process.communicate()
    assert not (pairs / "killed" / "result.json").exists()
    saved = json.loads((pairs / "killed" / "checkpoint" / "meta.json").read_text())["step"]
    assert saved >= 2
    flags = {"epochs": saved // 3 + 2, "save_interval": 2}
    assert run_pairs(kind, "runs/killed", **flags, from_resume=1) == 0
    assert run_pairs(kind, "runs/whole", **flags) == 0
    assert metrics_of(pairs / "killed") == metrics_of(pairs / "whole")
    assert same_weights(pairs / "killed", pairs / "whole")


@both
def test_numbers_that_are_not_finite_end_the_run_with_the_step(pairs, kind, capfd):
    assert run_pairs(kind, "runs/1", max_steps=1) == 0
    state_path = pairs / "1" / "checkpoint" / "state.pt"
    state = torch.load(state_path, weights_only=True)
    state["model"]["model.norm.weight"][0] = float("nan")
    torch.save(state, state_path)
    assert run_pairs(kind, "runs/1", from_resume=1) == 1
    assert "error: the loss at step 2 is not finite (nan)" in capfd.readouterr().err
