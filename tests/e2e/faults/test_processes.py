"""Processes of a worker that are killed, frozen or stopped under a running job."""

import os
import signal
import time

import psutil
import pytest

from jobs.models import Attempt, Job
from tests.e2e.live_stack import asked, gone, wait_for, wait_for_status, wait_for_step

pytestmark = pytest.mark.e2e
LOST, DRAINED, COMPLETED = Attempt.Outcome.LOST, Attempt.Outcome.DRAINED, Attempt.Outcome.COMPLETED


def outcomes(job):
    return [attempt.outcome for attempt in job.attempts.order_by("number")]


@pytest.mark.fault(1)
def test_a_killed_pool_process_takes_its_trainer_along_and_the_job_runs_again(live, happened):
    job = asked(steps=20)
    wait_for_step(live, job, 3)
    pid = live.trainer(job).pid
    os.kill(live.supervisor(job), signal.SIGKILL)
    ended_after = wait_for(lambda: gone(pid), 5)
    assert ended_after < 3
    happened(
        f"trainer dead after {ended_after:.1f} s, done {wait_for_status(job, Job.Status.COMPLETED, 30):.0f} s later"
    )
    assert (live.counts(job), outcomes(job)) == ((2, 1), [LOST, COMPLETED])
    assert job.attempts.get(number=1).cause == f"a process of worker {job.worker} ended without a word"


@pytest.mark.fault(2)
def test_a_killed_worker_takes_its_trainer_along_and_its_job_goes_on_before_a_younger_one(live, happened):
    older, younger = asked(steps=30), asked(steps=1)
    wait_for_step(live, older, 3)
    pid = live.trainer(older).pid
    os.kill(live.worker.pid, signal.SIGKILL)
    ended_after = wait_for(lambda: gone(pid), 5)
    assert ended_after < 3
    live.worker.finish(0)
    live.start_worker()
    wait_for_status(younger, Job.Status.COMPLETED, 30)
    older.refresh_from_db()
    assert (live.counts(older), outcomes(older), older.requeues) == ((2, 1), [LOST, COMPLETED], 1)
    assert list(older.metrics.values_list("step", flat=True)) == list(range(1, 31))
    happened(f"trainer dead after {ended_after:.1f} s, attempt 2 done before the younger job")


@pytest.mark.fault(3)
@pytest.mark.parametrize(
    ("fault", "exit_code", "cause"),
    [
        ("exit1", 1, "ValueError: the loss is made of cheese"),
        ("segv", -signal.SIGSEGV, "the trainer was killed by SIGSEGV (a crash in native code)"),
        (
            "sigkill",
            -signal.SIGKILL,
            "the trainer was killed by SIGKILL (killed from outside; no sign of the kernel's memory killer)",
        ),
    ],
)
def test_a_failed_trainer_says_why_and_the_worker_takes_the_next_job(live, fault, exit_code, cause, happened):
    job, following = asked(fault), asked(steps=1)
    wait_for_status(job, Job.Status.FAILED)
    assert (job.cause, job.attempts.get().exit_code) == (cause, exit_code)
    wait_for_status(following, Job.Status.COMPLETED)
    happened(f"failed: {cause}")


@pytest.mark.fault(4)
def test_a_killed_guard_takes_the_trainer_along_and_the_job_runs_again(live, happened):
    job = asked(steps=20)
    wait_for_step(live, job, 2)
    pid = live.trainer(job).pid
    os.kill(psutil.Process(pid).ppid(), signal.SIGKILL)
    ended_after = wait_for(lambda: gone(pid), 2)
    wait_for_status(job, Job.Status.COMPLETED)
    assert (live.counts(job), outcomes(job), job.requeues) == ((2, 1), [LOST, COMPLETED], 1)
    happened(f"trainer dead after {ended_after:.2f} s, attempt 2 done")


@pytest.mark.fault(5)
def test_a_frozen_supervisor_loses_its_trainer_before_another_worker_has_the_job_and_writes_nothing_more(
    live_pair, happened
):
    job = asked(steps=60)
    wait_for_step(live_pair, job, 3)
    pid, supervisor = live_pair.trainer(job).pid, live_pair.supervisor(job)
    os.kill(supervisor, signal.SIGSTOP)
    ended_after = wait_for(lambda: gone(pid), 6)
    assert ended_after < 6
    started_after = ended_after + wait_for(lambda: live_pair.counts(job)[0] == 2, 15)
    time.sleep(2)
    os.kill(supervisor, signal.SIGCONT)
    wait_for_status(job, Job.Status.COMPLETED)
    assert (live_pair.counts(job), outcomes(job)) == ((2, 1), [LOST, COMPLETED])
    assert {attempt.device.key for attempt in job.attempts.all()} == {"GPU-0", "GPU-1"}
    assert list(job.metrics.values_list("step", flat=True)) == list(range(1, 61))
    happened(f"trainer dead after {ended_after:.1f} s, the other worker's runs after {started_after:.1f} s")


@pytest.mark.fault(6)
def test_stopping_a_worker_puts_its_job_back_and_it_resumes_where_it_stopped(live, happened):
    job = asked(steps=30)
    wait_for_step(live, job, 3)
    process = psutil.Process(live.worker.pid)
    live.worker.terminate()
    assert process.wait(10) == 0
    stopped_after = time.time() - live.ledger(job)[-1][2]
    assert stopped_after < 4
    job.refresh_from_db()
    assert (job.status, job.resume, job.requeues) == (Job.Status.QUEUED, True, 0)
    assert job.checkpoint_step >= 3
    live.start_worker()
    wait_for_status(job, Job.Status.COMPLETED)
    assert [word for word in live.words(job) if word.startswith("STEP")] == [f"STEP {n}" for n in range(1, 31)]
    assert outcomes(job) == [DRAINED, COMPLETED]
    happened(f"gone {stopped_after:.1f} s after the last step with status 0, resumed at step {job.checkpoint_step + 1}")


@pytest.mark.fault(15)
def test_after_a_kill_of_everything_a_finished_result_is_adopted_and_the_rest_runs_again(live_pair, happened):
    finished, cut = asked(steps=5), asked(steps=40)
    for job in (finished, cut):
        wait_for_step(live_pair, job, 2)
    os.kill(live_pair.supervisor(finished), signal.SIGSTOP)
    wait_for(lambda: (live_pair.home / finished.run_dir / "result.json").exists(), 5)
    for pid, _ in live_pair.processes():
        os.kill(pid, signal.SIGKILL)
    for child in live_pair.children:
        child.finish(0)
    live_pair.start()
    taken = [wait_for_status(job, Job.Status.COMPLETED, 30) for job in (finished, cut)]
    assert (live_pair.counts(finished), outcomes(finished)) == ((1, 1), [COMPLETED])
    assert (live_pair.counts(cut), outcomes(cut)) == ((2, 1), [LOST, COMPLETED])
    happened(f"adopted {taken[0]:.0f} s after the start, the other job done {taken[1]:.0f} s later")


@pytest.mark.fault(16)
def test_a_result_that_was_finished_but_not_recorded_is_adopted(live, happened):
    job = asked(steps=5)
    wait_for_step(live, job, 3)
    supervisor = live.supervisor(job)
    os.kill(supervisor, signal.SIGSTOP)
    wait_for(lambda: (live.home / job.run_dir / "result.json").exists(), 5)
    os.kill(supervisor, signal.SIGKILL)
    adopted_after = wait_for_status(job, Job.Status.COMPLETED)
    assert (live.counts(job), job.attempts.count(), job.requeues) == ((1, 1), 1, 0)
    assert list(job.metrics.values_list("step", flat=True)) == [1, 2, 3, 4, 5]
    happened(f"adopted after {adopted_after:.1f} s, ended once")
