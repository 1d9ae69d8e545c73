"""The database is away for longer than a lease: SQLite is locked, PostgreSQL is killed and started again."""

import time

import pytest

from jobs.models import Job
from tests.e2e.live_stack import asked, wait_for, wait_for_status, wait_for_step

pytestmark = [pytest.mark.e2e, pytest.mark.fault(12)]
AWAY = 9  # seconds; a lease is 6


def test_training_goes_on_while_the_database_is_away_for_longer_than_the_lease(live, database_away, happened):
    job = asked(steps=130)
    wait_for_step(live, job, 3)
    with database_away():
        time.sleep(AWAY)
        reached = len(live.words(job)) - 1
    wait_for_status(job, Job.Status.COMPLETED, 30)
    assert (live.counts(job), job.attempts.count()) == ((1, 1), 1)
    assert list(job.metrics.values_list("step", flat=True)) == list(range(1, 131))
    happened(f"away {AWAY} s: the trainer went on to step {reached}, attempt 1 done, no metric missing")


def test_a_job_that_ends_while_the_database_is_away_is_recorded_once_it_is_back(live, database_away, happened):
    job = asked(steps=20)
    wait_for_step(live, job, 3)
    with database_away():
        wait_for(lambda: "END" in live.words(job), 20)
        time.sleep(AWAY)
    recorded_after = wait_for_status(job, Job.Status.COMPLETED, 30)
    assert (live.counts(job), job.attempts.count()) == ((1, 1), 1)
    assert list(job.metrics.values_list("step", flat=True)) == list(range(1, 21))
    happened(f"ended meanwhile: recorded {recorded_after:.1f} s after it was back, attempt 1 done")
