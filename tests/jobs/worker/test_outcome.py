"""How an attempt ended, in words."""

import json

import pytest

from jobs.worker.outcome import Asked, Ending, Wish, classify, read_result

KERNEL = "the machine ran out of memory: the kernel killed the trainer (SIGKILL)"
SIGKILL = "SIGKILL (killed from outside; no sign of the kernel's memory killer)"


def ending(tmp_path, status, *, result=None, log="", checkpoint=None, **more):
    if result is not None:
        (tmp_path / "result.json").write_text(json.dumps(result))
    if checkpoint is not None:
        (tmp_path / "checkpoint").mkdir()
        (tmp_path / "checkpoint" / "meta.json").write_text(json.dumps({"step": checkpoint}))
    return classify(status, tmp_path, output=log, **more)


def test_a_result_with_status_0_is_success(tmp_path):
    assert ending(tmp_path, 0, result={"exit_code": 0}) == Ending(outcome="completed", exit_code=0)


def test_a_success_before_the_last_step_says_why(tmp_path):
    found = ending(tmp_path, 0, result={"exit_code": 0, "stopped_early": True})
    assert found == Ending(outcome="completed", cause="ended early: stop_at was reached", exit_code=0)


def test_status_0_without_a_result_is_a_failure(tmp_path):
    assert ending(tmp_path, 0) == Ending(outcome="failed", cause="the trainer ended without a result", exit_code=0)


def test_bad_configuration_shows_its_one_line(tmp_path):
    found = ending(tmp_path, 2, log="$ python -m trainers sft\nerror: --epochs: must be at least 1\n")
    assert found == Ending(outcome="failed", cause="--epochs: must be at least 1", exit_code=2)


def test_the_results_error_comes_before_the_log(tmp_path):
    assert ending(tmp_path, 1, result={"error": "Diverged: loss is nan"}, log="x\n").cause == "Diverged: loss is nan"


def test_out_of_memory_keeps_the_advice(tmp_path):
    found = ending(tmp_path, 4, result={"error": "out of memory: halve batch_size"})
    assert (found.outcome, found.cause) == ("out_of_memory", "out of memory: halve batch_size")


@pytest.mark.parametrize(
    ("oom_killed", "outcome", "cause"),
    [
        (False, "failed", f"the trainer was killed by {SIGKILL}"),
        (True, "out_of_memory", KERNEL),
    ],
)
def test_sigkill_is_out_of_memory_only_when_the_kernel_counted_it(tmp_path, oom_killed, outcome, cause):
    found = ending(tmp_path, 128 + 9, oom_killed=oom_killed)
    assert (found.outcome, found.cause, found.exit_code) == (outcome, cause, -9)


@pytest.mark.parametrize(("status", "word"), [(3, "stopped from outside"), (-9, "SIGKILL"), (75, "become free")])
def test_faults_of_the_machine_are_tried_again(tmp_path, status, word):
    found = ending(tmp_path, status)
    assert (found.outcome, found.again) == ("lost", True)
    assert word in found.cause


@pytest.mark.parametrize("status", [3, 1, -9, 128 + 15, 128 + 9])
def test_whatever_the_status_a_cancelled_attempt_was_cancelled(tmp_path, status):
    found = ending(tmp_path, status, wish=Wish(Asked.CANCEL), checkpoint=40)
    assert (found.outcome, found.cause, found.again) == ("cancelled", "checkpoint at step 40", False)


def test_a_job_that_finished_before_it_could_be_cancelled_completed(tmp_path):
    assert ending(tmp_path, 0, result={}, wish=Wish(Asked.CANCEL)).outcome == "completed"


@pytest.mark.parametrize("status", [3, -9, 128 + 15])
def test_a_stopped_worker_puts_the_job_back(tmp_path, status):
    found = ending(tmp_path, status, wish=Wish(Asked.DRAIN, "the worker was stopped"))
    assert (found.outcome, found.cause, found.again) == ("drained", "the worker was stopped; no checkpoint", True)


def test_an_error_while_the_worker_stops_is_still_an_error(tmp_path):
    assert (
        ending(tmp_path, 1, wish=Wish(Asked.DRAIN, "the worker was stopped"), log="ValueError: no\n").outcome
        == "failed"
    )


NIGHT_OVER = Wish(Asked.YIELD, "the window night closed")
LIMIT = Wish(Asked.TIME_LIMIT, "time limit of 8 h reached")


@pytest.mark.parametrize("status", [3, 75, -9, 128 + 15, 128 + 9])
def test_a_job_that_shall_yield_goes_back_with_that_reason(tmp_path, status):
    found = ending(tmp_path, status, wish=NIGHT_OVER, checkpoint=120)
    assert (found.outcome, found.cause, found.again) == (
        "drained",
        "the window night closed; checkpoint at step 120",
        True,
    )


@pytest.mark.parametrize("status", [3, 75, -9, 128 + 15, 128 + 9])
def test_a_job_at_its_limit_timed_out_and_is_not_tried_again(tmp_path, status):
    found = ending(tmp_path, status, wish=LIMIT, checkpoint=120, oom_killed=True)
    assert (found.outcome, found.cause, found.advice, found.again) == (
        "timed_out",
        "time limit of 8 h reached; checkpoint at step 120",
        "resume it with a longer limit",
        False,
    )


@pytest.mark.parametrize("wish", [NIGHT_OVER, LIMIT])
@pytest.mark.parametrize(
    ("status", "result", "outcome"),
    [(0, {}, "completed"), (1, None, "failed"), (2, None, "failed"), (4, None, "out_of_memory")],
)
def test_what_the_trainer_says_itself_comes_before_the_wish(tmp_path, wish, status, result, outcome):
    assert ending(tmp_path, status, result=result, wish=wish).outcome == outcome


def test_the_wishes_stand_in_the_order_in_which_they_count():
    weakest_first = [Wish(Asked.DRAIN, "z"), NIGHT_OVER, LIMIT, Wish(Asked.CANCEL)]
    assert sorted(weakest_first) == weakest_first


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (128 + 11, "SIGSEGV (a crash in native code)"),
        (128 + 9, "SIGKILL (killed from outside; no sign of the kernel's memory killer)"),
        (128 + 40, "signal 40"),
    ],
)
def test_a_signal_is_named_and_explained(tmp_path, status, words):
    found = ending(tmp_path, status)
    assert (found.outcome, found.cause) == ("failed", f"the trainer was killed by {words}")


@pytest.mark.parametrize(
    "log",
    [
        "RuntimeError: DataLoader worker (pid 71) is killed by signal: Killed. ",
        "error: process 1 of 2 died (see above)",
        "Signal 9 (SIGKILL) received by PID 71",
        "  exitcode  : -9 (pid: 71)",
        "the worker process ended with exit code -9",
    ],
)
def test_a_process_of_the_trainer_that_the_kernel_killed_is_out_of_memory_too(tmp_path, log):
    found = ending(tmp_path, 1, log=log, oom_killed=True)
    assert (found.outcome, found.cause) == ("out_of_memory", KERNEL)
    assert ending(tmp_path, 1, log=log).outcome == "failed"


def test_what_the_kernel_killed_elsewhere_explains_no_other_error(tmp_path):
    found = ending(tmp_path, 1, log="ValueError: no\n", oom_killed=True)
    assert (found.outcome, found.cause) == ("failed", "ValueError: no")


def test_a_result_with_numbers_that_no_database_keeps_is_read_without_them(tmp_path):
    (tmp_path / "result.json").write_text('{"last": {"loss": NaN}, "error": "a\\u0000b"}')
    assert read_result(tmp_path) == {"last": {"loss": None}, "error": "a\ufffdb"}


def test_a_result_that_is_no_object_counts_as_none(tmp_path):
    (tmp_path / "result.json").write_text("[1]")
    assert read_result(tmp_path) is None
