"""What becomes of running jobs when their window closes."""

from datetime import UTC, datetime, time

import pytest

from jobs.models import Attempt, Event, Job, Window
from jobs.services.attempts import requeue_attempt
from jobs.services.claim import claim_next
from jobs.services.closing import yield_closed
from jobs.services.reasons import waiting_reasons
from tests.jobs.rows import queued, worker

pytestmark = pytest.mark.django_db

NIGHT, DAY = datetime(2026, 6, 10, 22, tzinfo=UTC), datetime(2026, 6, 11, 8, tzinfo=UTC)


def running_in(at_end):
    """Return the attempt of a job that runs in a night from 20:00 to 08:00 UTC."""
    night = Window.objects.create(name="night", time_zone="UTC", opens=time(20), closes=time(8), at_end=at_end)
    job = queued()
    attempt = claim_next(worker())
    Job.objects.filter(pk=job.pk).update(window=night)
    return attempt


def test_a_job_whose_window_closed_is_asked_to_go_back_once():
    attempt = running_in(Window.AtEnd.REQUEUE)
    assert (yield_closed(NIGHT), yield_closed(DAY), yield_closed(DAY)) == (0, 1, 0)
    job = Job.objects.get()
    assert (job.status, job.yield_reason) == (Job.Status.RUNNING, "the window night closed")
    assert Event.objects.get(kind="yield_requested").detail == "the window night closed"
    requeue_attempt(attempt, Attempt.Outcome.DRAINED, cause="the window night closed; checkpoint at step 3")
    job.refresh_from_db()
    assert (job.status, job.yield_reason, job.requeues) == (Job.Status.QUEUED, "", 0)


def test_a_job_that_may_run_on_is_left_alone():
    running_in(Window.AtEnd.RUN_ON)
    assert yield_closed(DAY) == 0
    assert Job.objects.get().yield_reason == ""


def test_a_job_without_a_window_is_left_alone():
    queued()
    claim_next(worker())
    Window.objects.create(name="never", time_zone="UTC", weekdays="", at_end=Window.AtEnd.REQUEUE)
    assert yield_closed(DAY) == 0


def test_a_job_starts_only_while_its_window_is_open():
    never = Window.objects.create(name="never", time_zone="UTC", weekdays="")
    job = queued(window=never)
    serving = worker()
    assert claim_next(serving) is None
    Window.objects.update(weekdays="0123456", opens=time(6), closes=time(6))
    assert claim_next(serving).job == job


def test_a_window_whose_time_zone_is_not_known_stops_neither_what_runs_nor_the_other_windows():
    first = running_in(Window.AtEnd.REQUEUE).job
    lost = Window.objects.create(name="lost", time_zone="Mars/Base", at_end=Window.AtEnd.REQUEUE)
    second = queued()
    claim_next(worker("cpu2@here", key="cpu:two"))
    Job.objects.filter(pk=second.pk).update(window=lost)
    assert yield_closed(DAY) == 1
    assert list(Job.objects.exclude(yield_reason="")) == [first]


def test_a_job_in_a_window_whose_time_zone_is_not_known_says_so_and_keeps_no_other_from_starting():
    waiting = queued(window=Window.objects.create(name="lost", time_zone="Mars/Base"))
    other = queued()
    assert claim_next(worker()).job == other
    told = "window lost has the time zone Mars/Base, which is not known here"
    assert waiting_reasons([waiting]) == {waiting.pk: told}
