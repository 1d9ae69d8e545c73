"""Failures under the names and with the advice that people read."""

import logging
import signal
import time
from dataclasses import dataclass

import pytest

from jobs.worker.failure import name_failure
from jobs.worker.first_match import Match, first_match
from jobs.worker.outcome import Ending


@dataclass(frozen=True)
class Pattern:
    title: str
    pattern: str
    advice: str = "do something"
    machine_fault: bool = False
    out_of_memory: bool = False


DISK = Pattern("the disk is full", "No space left", "make room", machine_fault=True)
MEMORY = Pattern("the GPU ran out of memory", "CUDA out of memory", "a smaller batch", out_of_memory=True)
LABELS = Pattern("a label is wrong", "device-side assert", "check the labels")
KILLED = Pattern("killed from outside", "killed by SIGKILL", "ask around")
ALL = (DISK, MEMORY, LABELS, KILLED)


def failed(cause, exit_code=1, outcome="failed"):
    return Ending(outcome=outcome, cause=cause, exit_code=exit_code)


def test_a_failure_has_the_patterns_title_its_line_and_its_advice():
    found = name_failure(
        failed("RuntimeError: device-side assert triggered"), "x\nRuntimeError: device-side assert triggered\ny\n", ALL
    )
    assert found == Ending(
        outcome="failed",
        cause="a label is wrong: RuntimeError: device-side assert triggered",
        advice="check the labels",
        exit_code=1,
    )


def test_a_line_above_that_explains_the_end_does_not_hide_it():
    found = name_failure(failed("KeyError: 'x'"), "a device-side assert\nKeyError: 'x'\n", ALL)
    assert found.cause == "a label is wrong: a device-side assert; KeyError: 'x'"


def test_a_failure_that_no_pattern_knows_keeps_its_cause():
    ending = failed("KeyError: 'x'")
    assert name_failure(ending, "KeyError: 'x'\n", ALL) == ending


def test_the_first_pattern_counts_wherever_it_matches_and_its_last_line_is_shown():
    lines = ["No space left 1", "No space left 2", "device-side assert"]
    assert first_match(ALL, lines) == Match(DISK, "No space left 2")
    assert first_match((LABELS, DISK), lines) == Match(LABELS, "device-side assert")


def test_a_fault_of_the_machine_is_tried_again_and_says_where_it_was():
    found = name_failure(failed("OSError: No space left"), "", ALL, place="on gpu1, 0 bytes free on its disk")
    assert (found.outcome, found.again, found.advice) == ("lost", True, "make room")
    assert found.cause == "the disk is full: OSError: No space left (on gpu1, 0 bytes free on its disk)"


CRASH = "Traceback (most recent call last):\n  File x\n"


@pytest.mark.parametrize(
    ("output", "exit_code", "outcome"),
    [
        ("a warning: No space left for the cache\nstep 3\nKeyError: 'x'\n", 1, "failed"),
        (f"a warning: No space left for the cache\nstep 3\n{CRASH}KeyError: 'x'\n", 1, "failed"),
        (f"step 3\n{CRASH}OSError: No space left\n{CRASH}KeyError: 'x'\n", 1, "lost"),
        ("step 3\nerror: result.json cannot be written: No space left\nbye\n", 1, "lost"),
        ("[rank0] says No space left\nstep 3\n", -6, "lost"),
    ],
)
def test_a_fault_of_the_machine_counts_where_the_trainer_gave_up_unless_it_died_unheard(output, exit_code, outcome):
    assert name_failure(failed("KeyError: 'x'", exit_code), output, ALL).outcome == outcome


def test_a_title_that_the_line_already_says_is_not_said_twice():
    assert name_failure(failed("the disk is full; No space left"), "", ALL).cause == "the disk is full; No space left"


def test_what_the_trainer_called_a_bad_configuration_is_a_persons_and_never_tried_again():
    found = name_failure(failed("--save_dir: No space left for this name", 2), "No space left\n", ALL)
    assert found == Ending(
        outcome="failed", cause="--save_dir: No space left for this name", advice="make room", exit_code=2
    )


@pytest.mark.parametrize("outcome", ["completed", "cancelled", "drained", "timed_out", "lost"])
def test_what_did_not_fail_gets_no_name(outcome):
    ending = failed("", 3, outcome)
    assert name_failure(ending, "No space left\n", ALL) == ending


def test_a_trainer_that_died_with_another_code_but_speaks_of_memory_ran_out_of_it():
    said = "ncclUnhandledCudaError: CUDA out of memory\n"
    found = name_failure(failed("the trainer was killed by SIGABRT", -6), said, ALL, memory_advice="--batch_size 8")
    assert (found.outcome, found.again, found.advice) == ("out_of_memory", False, "--batch_size 8")
    assert found.cause == (
        "the GPU ran out of memory: ncclUnhandledCudaError: CUDA out of memory; the trainer was killed by SIGABRT"
    )


def test_advice_that_the_trainer_gave_with_its_error_is_said_once():
    ending = failed("out of memory: --batch_size 8", 4, "out_of_memory")
    found = name_failure(
        ending, "No space left\nCUDA out of memory. Tried 2 GiB\n", ALL, memory_advice="--batch_size 8"
    )
    assert found.cause == "the GPU ran out of memory: CUDA out of memory. Tried 2 GiB"
    unknown = name_failure(ending, "No space left\n", ALL, memory_advice="--batch_size 8")
    assert (unknown.cause, unknown.advice) == ("out of memory", "--batch_size 8")


def test_memory_that_ran_out_is_named_by_no_other_pattern():
    found = name_failure(failed("out of memory", 4, "out_of_memory"), "device-side assert\n", (LABELS, MEMORY))
    assert (found.outcome, found.cause) == ("out_of_memory", "out of memory")


def test_the_word_error_is_left_out_before_a_line_that_has_a_title():
    output = "error: a device-side assert\n"
    assert name_failure(failed("a device-side assert"), output, ALL).cause == "a label is wrong: a device-side assert"
    assert name_failure(failed("gone", -6), output, ALL).cause == "a label is wrong: a device-side assert; gone"


def test_without_the_jobs_parameters_the_patterns_own_advice_remains():
    assert name_failure(failed("CUDA out of memory"), "", ALL).advice == "a smaller batch"


def test_a_death_by_signal_is_found_by_its_own_words():
    found = name_failure(failed("the trainer was killed by SIGKILL (killed from outside)", -9), "step 3\n", ALL)
    assert (found.cause, found.advice) == ("the trainer was killed by SIGKILL (killed from outside)", "ask around")


def test_a_broken_pattern_is_left_out_with_a_warning(caplog):
    with caplog.at_level(logging.WARNING):
        assert first_match((Pattern("broken", "("), DISK), ["No space left"]) == Match(DISK, "No space left")
    assert "failure pattern 'broken' is left out" in caplog.text


def test_a_pattern_that_would_take_for_ever_is_given_up_and_the_next_is_tried(caplog, monkeypatch):
    monkeypatch.setattr("jobs.worker.first_match.PATIENCE", 0.1)
    began, before = time.monotonic(), signal.getsignal(signal.SIGALRM)
    lines = ["a" * 40 + "!", "No space left"]
    with caplog.at_level(logging.WARNING):
        assert first_match((Pattern("slow", "^(a+)+$"), DISK), lines) == Match(DISK, "No space left")
    assert time.monotonic() - began < 5
    assert "failure pattern 'slow' is left out: TooSlow" in caplog.text
    assert (signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)) == (before, (0.0, 0.0))
