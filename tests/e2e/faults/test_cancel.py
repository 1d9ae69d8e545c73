"""A cancelled job ends soon, whatever state it and its worker are in."""

import psutil
import pytest

from jobs.models import Attempt, Job
from jobs.services.lifecycle import request_cancel
from tests.e2e.live_stack import asked, gone, kill_tree, wait_for, wait_for_status, wait_for_step
from tests.jobs.rows import person

pytestmark = [pytest.mark.e2e, pytest.mark.fault(14)]


def test_a_queued_job_is_cancelled_at_once_and_never_starts(live, happened):
    running, queued = asked(steps=20), asked(steps=1)
    wait_for_step(live, running, 1)
    request_cancel(queued, by=person())
    assert queued.status == Job.Status.CANCELLED
    wait_for_status(running, Job.Status.COMPLETED)
    assert live.words(queued) == []
    happened("queued: at once")


def test_a_running_job_saves_and_ends_within_two_seconds(live, happened):
    job = asked(steps=500)
    wait_for_step(live, job, 3)
    pid = live.trainer(job).pid
    request_cancel(job, by=person())
    ended_after = wait_for(lambda: gone(pid), 5)
    assert ended_after < 2
    wait_for_status(job, Job.Status.CANCELLED, 3)
    assert (job.attempts.get().outcome, job.checkpoint_step) == (Attempt.Outcome.CANCELLED, job.step)
    assert job.cause == f"cancelled by ada; checkpoint at step {job.step}"
    happened(f"running: trainer ended after {ended_after:.1f} s")


def test_a_trainer_that_ignores_sigterm_is_killed_after_the_grace_with_what_it_started(live, happened):
    job = asked("ignore_sigterm_grandchild", steps=500)
    wait_for_step(live, job, 3)
    trainer = live.trainer(job)
    [sleeper] = trainer.children()
    request_cancel(job, by=person())
    ended_after = wait_for(lambda: gone(trainer.pid), 8)
    assert 2 <= ended_after < 4
    wait_for_status(job, Job.Status.CANCELLED, 3)
    assert gone(sleeper.pid)
    happened(f"ignores SIGTERM: killed after {ended_after:.1f} s (grace 2 s), its grandchild too")


def test_a_job_whose_worker_is_dead_is_cancelled_when_its_lease_ends(live, happened):
    job = asked(steps=500)
    wait_for_step(live, job, 3)
    guard = psutil.Process(live.trainer(job).ppid())
    kill_tree(live.worker)
    request_cancel(job, by=person())
    ended_after = wait_for_status(job, Job.Status.CANCELLED, 12)
    assert ended_after < 6 + 2 + 1  # the lease, and the janitor's turn
    assert gone(guard.pid)
    assert job.cause == "cancelled by ada; its worker was gone"
    happened(f"worker dead: cancelled after {ended_after:.1f} s (lease 6 s)")
