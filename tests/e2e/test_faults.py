"""Faults of the machine under a running job."""

import os
import signal
import sqlite3
import time

import psutil
import pytest

from jobs.models import Attempt, Job
from jobs.services.wake import publish
from tests.e2e.conftest import wait_for, wait_for_status
from tests.e2e.test_queue import asked, gone, wait_for_step

pytestmark = pytest.mark.e2e


def test_a_frozen_supervisor_loses_its_trainer_before_its_lease_and_writes_nothing_afterwards(live):
    job = asked(steps=40)
    wait_for_step(live, job, 3)
    pid = live.ledger(job)[0][1]
    supervisor = psutil.Process(pid).parent().ppid()
    os.kill(supervisor, signal.SIGSTOP)
    assert wait_for(lambda: gone(pid), 6) < 5
    wait_for_status(job, Job.Status.QUEUED, 15)
    os.kill(supervisor, signal.SIGCONT)
    wait_for_status(job, Job.Status.COMPLETED)
    assert [attempt.outcome for attempt in job.attempts.all()] == [Attempt.Outcome.LOST, Attempt.Outcome.COMPLETED]
    assert (live.words(job).count("START"), live.words(job).count("END")) == (2, 1)


def test_a_database_that_is_locked_for_longer_than_the_lease_disturbs_no_training(live):
    job = asked(steps=40)
    wait_for_step(live, job, 3)
    lock = sqlite3.connect(live.home / "nightshift.sqlite3", isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    time.sleep(9)
    lock.execute("ROLLBACK")
    lock.close()
    wait_for_status(job, Job.Status.COMPLETED)
    assert (live.words(job).count("START"), job.attempts.count()) == (1, 1)
    assert list(job.metrics.values_list("step", flat=True)) == list(range(1, 41))


def test_twenty_messages_start_one_job_once(live):
    first = asked(steps=10)
    publish(*[live.queue] * 20)
    second = asked(steps=1)
    for job in (first, second):
        wait_for_status(job, Job.Status.COMPLETED)
        assert live.words(job).count("START") == 1


def test_a_killed_pool_process_takes_its_trainer_along_and_the_job_runs_again(live):
    job = asked(steps=20)
    wait_for_step(live, job, 3)
    pid = live.ledger(job)[0][1]
    os.kill(psutil.Process(pid).parent().ppid(), signal.SIGKILL)
    assert wait_for(lambda: gone(pid), 5) < 3
    wait_for_status(job, Job.Status.COMPLETED, 30)
    assert (live.words(job).count("START"), live.words(job).count("END")) == (2, 1)
    assert job.attempts.get(number=1).cause == f"a process of worker {job.worker} ended without a word"


def test_a_job_whose_worker_was_killed_goes_on_before_a_younger_one_when_the_worker_is_back(live):
    older, younger = asked(steps=20), asked(steps=1)
    wait_for_step(live, older, 3)
    live.kill_worker()
    live.start_worker()
    wait_for_status(younger, Job.Status.COMPLETED, 30)
    older.refresh_from_db()
    assert older.status == Job.Status.COMPLETED
    assert older.attempts.get(number=1).cause == f"a process of worker {older.worker} ended without a word"


def test_a_result_that_was_finished_but_not_recorded_is_adopted(live):
    job = asked(steps=5)
    wait_for_step(live, job, 4)
    supervisor = psutil.Process(live.ledger(job)[0][1]).parent().ppid()
    os.kill(supervisor, signal.SIGSTOP)
    wait_for(lambda: "END" in live.words(job), 3)
    os.kill(supervisor, signal.SIGKILL)
    wait_for_status(job, Job.Status.COMPLETED, 20)
    assert (live.words(job).count("START"), job.attempts.count(), job.requeues) == (1, 1, 0)
    assert list(job.metrics.values_list("step", flat=True)) == [1, 2, 3, 4, 5]
