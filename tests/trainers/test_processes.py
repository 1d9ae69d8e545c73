"""Processes that fail, are killed, or are asked to stop: they end together, with one reason."""

import os
import signal
import time

import pytest

from tests.trainers import grpo_runs
from tests.trainers.grpo_runs import metrics_of, same_weights
from tests.trainers.rank_runs import ended, result_of, run_ranks, said, start_ranks
from tests.trainers.sft_runs import argv, run_sft
from trainers import processes
from trainers.exits import FAILED, Exit
from trainers.processes import Endings
from trainers.runtime import Run

STEP = 2


def at_step(wanted: int, act) -> None:
    """Let ``act`` happen in this process where its step ``wanted`` begins."""
    begin_step = Run.begin_step

    def begin(run: Run) -> None:
        begin_step(run)
        if run.step == wanted:
            act()

    Run.begin_step = begin


def the_second_raises(rank: int) -> None:
    if rank == 1:
        at_step(STEP, lambda: [].pop())


def the_first_raises(rank: int) -> None:
    if rank == 0:
        at_step(STEP, lambda: [].pop())


def the_second_is_killed(rank: int) -> None:
    if rank == 1:
        at_step(STEP, lambda: os.kill(os.getpid(), signal.SIGKILL))


def the_first_saves_slowly(rank: int) -> None:
    if rank == 0:
        finish = Run.finish
        Run.finish = lambda run, model, tokenizer: time.sleep(1.5) or finish(run, model, tokenizer)


def only_the_second_is_asked_to_stop(rank: int) -> None:
    if rank == 1:
        at_step(STEP, lambda: os.kill(os.getpid(), signal.SIGTERM))


def test_the_reason_of_a_process_that_fails_is_the_run_s(home):
    assert run_ranks(home, argv("runs/1"), prepare=the_second_raises) == [1, 1]
    reason = "process 1 of 2: IndexError: pop from empty list"
    assert result_of(home / "runs" / "1")["error"] == reason
    assert said(home, 1) == ""
    log = (home / "runs" / "1" / "log.txt").read_text()
    assert "process 1 of 2: Traceback (most recent call last):\n" in log
    assert log.endswith("IndexError: pop from empty list\n\n")
    assert not (home / "runs" / "1" / ".ranks").exists()


def test_the_second_process_says_nothing_when_the_first_fails(home):
    assert run_ranks(home, argv("runs/1"), prepare=the_first_raises) == [1, 1]
    assert result_of(home / "runs" / "1")["error"] == "IndexError: pop from empty list"
    assert said(home, 1) == ""


def test_a_process_that_is_killed_ends_the_others_within_seconds(home):
    began = time.monotonic()
    assert run_ranks(home, argv("runs/1"), prepare=the_second_is_killed) == [1, -signal.SIGKILL]
    assert time.monotonic() - began < 20
    assert result_of(home / "runs" / "1")["error"] == "process 1 of 2 died (see above)"
    assert said(home, 0).endswith("error: process 1 of 2 died (see above)\n")


def test_of_three_the_one_that_was_killed_is_named(home):
    assert run_ranks(home, argv("runs/1"), 3, the_second_is_killed) == [1, -signal.SIGKILL, 1]
    assert result_of(home / "runs" / "1")["error"] == "process 1 of 3 died (see above)"


def test_a_bad_configuration_is_said_once(home):
    assert run_ranks(home, argv("runs/1", init_path="runs/none")) == [2, 2]
    assert said(home, 0).splitlines()[-1].startswith("error: no model in ")
    assert said(home, 0).count("error: ") == 1
    assert said(home, 1) == ""
    assert result_of(home / "runs" / "1")["exit_code"] == 2


def test_several_processes_need_a_run_dir(home):
    kind, _, _, *rest = argv("runs/1")
    assert run_ranks(home, [kind, *rest]) == [2, 2]
    assert said(home, 0) == "error: --run_dir is needed with several processes, which share it\n"
    assert said(home, 1) == ""


def test_both_wait_for_the_first_to_have_saved(home):
    """Report 47: the others left, and the one that still saved hung."""
    assert run_ranks(home, argv("runs/1", max_steps=1), prepare=the_first_saves_slowly) == [0, 0]
    assert (home / "runs" / "1" / "model" / "model.safetensors").exists()
    assert result_of(home / "runs" / "1")["exit_code"] == 0


def test_a_request_that_reaches_one_stops_both_after_the_same_step_and_the_resumed_run_ends_as_one_never_stopped(home):
    flags = {"batch_size": 2, "save_interval": 100}
    assert run_ranks(home, argv("runs/parts", **flags), prepare=only_the_second_is_asked_to_stop) == [3, 3]
    result = result_of(home / "runs" / "parts")
    assert (result["exit_code"], result["checkpoint_step"], result["steps"]) == (3, STEP, STEP)
    assert run_ranks(home, argv("runs/parts", **flags, from_resume=1)) == [0, 0]
    assert run_ranks(home, argv("runs/whole", **flags)) == [0, 0]
    assert same_weights(home / "runs" / "parts", home / "runs" / "whole")
    assert metrics_of(home / "runs" / "parts") == metrics_of(home / "runs" / "whole")


def test_sampling_processes_continue_their_own_random_draws(home, start):
    flags = {**grpo_runs.FLAGS, "batch_size": 1, "device": "cpu", "sample_interval": 1}

    def grpo(run_dir: str, **more: object) -> list[str]:
        pairs = {"run_dir": run_dir, **flags, **more}
        return ["grpo", *(part for name, value in pairs.items() for part in (f"--{name}", str(value)))]

    assert run_ranks(home, grpo("runs/whole", max_steps=4)) == [0, 0]
    assert run_ranks(home, grpo("runs/parts", max_steps=2)) == [0, 0]
    assert run_ranks(home, grpo("runs/parts", max_steps=4, from_resume=1)) == [0, 0]
    assert metrics_of(start / "parts") == metrics_of(start / "whole")
    assert same_weights(start / "parts", start / "whole")


def test_killed_together_they_continue_from_the_last_checkpoint(home):
    flags = {"batch_size": 2, "epochs": 8, "save_interval": 2}
    together = start_ranks(home, argv("runs/parts", **flags))
    checkpoint = home / "runs" / "parts" / "checkpoint" / "meta.json"
    while not checkpoint.exists():
        time.sleep(0.01)
    for process in together:
        process.kill()
    assert ended(together) == [-signal.SIGKILL, -signal.SIGKILL]
    assert run_ranks(home, argv("runs/parts", **flags, from_resume=1)) == [0, 0]
    assert run_ranks(home, argv("runs/whole", **flags)) == [0, 0]
    assert same_weights(home / "runs" / "parts", home / "runs" / "whole")
    assert metrics_of(home / "runs" / "parts") == metrics_of(home / "runs" / "whole")


def test_a_resume_with_another_number_of_processes_is_one_line(home, capfd):
    assert run_ranks(home, argv("runs/1", batch_size=2, max_steps=2)) == [0, 0]
    assert run_sft("runs/1", batch_size=4, from_resume=1) == 2
    assert capfd.readouterr().err == (
        "error: the checkpoint was made by 2 processes, now there are 1; resume with as many, or start a new job\n"
    )


@pytest.fixture
def endings(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "PATIENCE_S", 0.2)
    monkeypatch.setenv("WORLD_SIZE", "4")
    endings = Endings(tmp_path)
    endings.begin()
    return endings


def tell(endings, monkeypatch, number, line):
    monkeypatch.setenv("RANK", str(number))
    endings.tell(Exit(FAILED, line, line))
    monkeypatch.setenv("RANK", "0")


def test_a_reason_counts_more_than_those_who_only_lost_the_others(endings, monkeypatch):
    tell(endings, monkeypatch, 1, "")
    tell(endings, monkeypatch, 3, "ValueError: x")
    assert endings.of_others().line == "process 3 of 4: ValueError: x"


def test_every_process_that_says_nothing_is_named(endings, monkeypatch):
    tell(endings, monkeypatch, 2, "")
    assert endings.of_others().line == "process 1, 3 of 4 died (see above)"


def test_nobody_is_blamed_when_all_only_lost_each_other(endings, monkeypatch):
    for number in (1, 2, 3):
        tell(endings, monkeypatch, number, "")
    assert endings.of_others().line == "the connection between the 4 processes broke"


def test_what_comes_after_the_run_has_ended_leaves_nothing_behind(endings, monkeypatch, tmp_path):
    endings.close()
    tell(endings, monkeypatch, 1, "too late")
    assert list(tmp_path.iterdir()) == []
