"""When waiting jobs are expected to start, from the database."""

from datetime import time, timedelta

import pytest
from django.utils import timezone

from jobs.models import Attempt, Job, Window
from jobs.services.claim import claim_next
from jobs.services.forecast import expected_starts
from jobs.services.schedule import queue_state
from tests.jobs.rows import queued, worker

pytestmark = pytest.mark.django_db


def took(seconds, by):
    """Record a job like the others that took so long."""
    job, ended = queued(), timezone.now()
    began = ended - timedelta(seconds=seconds)
    Attempt.objects.create(
        job=job, number=1, token=Job.new_token(), outcome="completed", started_at=began, ended_at=ended
    )
    Job.objects.filter(pk=job.pk).update(status="completed", worker=by, finished_at=ended)


def seconds_until(starts, now):
    return {job: pytest.approx((start - now).total_seconds(), abs=2) for job, start in starts.items()}


def test_each_job_starts_after_what_runs_and_what_is_before_it():
    cpu = worker()
    took(100, cpu)
    running, first = queued(), queued()
    child = queued(depends_on=first)
    assert claim_next(cpu).job == running
    held, absent = queued(hold=True), queued(device_request="gpu")
    later = queued(not_before=timezone.now() + timedelta(seconds=1000))
    now = timezone.now()
    starts = expected_starts(queue_state(now))
    assert seconds_until(starts, now) == {first.pk: 100, child.pk: 200, later.pk: 1000}
    assert not {held.pk, absent.pk, running.pk} & starts.keys()


def test_a_job_whose_window_is_closed_starts_when_it_opens():
    took(100, worker())
    now = timezone.now()
    opens = (now + timedelta(hours=2)).replace(second=0, microsecond=0)
    window = Window.objects.create(
        name="later", time_zone="UTC", opens=opens.time(), closes=(opens + timedelta(hours=1)).time()
    )
    job = queued(window=window)
    assert expected_starts(queue_state(now)) == {job.pk: opens}


def test_without_a_past_only_the_next_start_is_known():
    worker()
    first, _ = queued(), queued()
    assert list(expected_starts(queue_state(timezone.now()))) == [first.pk]


def test_a_chain_whose_parent_failed_has_no_start():
    worker()
    parent = queued()
    queued(depends_on=parent)
    Job.objects.filter(pk=parent.pk).update(status="failed")
    assert expected_starts(queue_state(timezone.now())) == {}


def test_an_overdue_job_is_expected_to_end_in_a_moment():
    cpu = worker()
    took(100, cpu)
    running, first = queued(), queued()
    claim_next(cpu)
    Job.objects.filter(pk=running.pk).update(started_at=timezone.now() - timedelta(hours=1))
    now = timezone.now()
    assert expected_starts(queue_state(now))[first.pk] == now + timedelta(seconds=1)


def test_the_number_of_queries_does_not_grow(django_assert_max_num_queries):
    cpu = worker()
    took(100, cpu)
    window = Window.objects.create(name="ever", time_zone="UTC", opens=time(0), closes=time(0))
    for _ in range(20):
        queued(window=window)
        queued(not_before=timezone.now() + timedelta(hours=1))
    claim_next(cpu)
    with django_assert_max_num_queries(20):
        assert len(expected_starts(queue_state(timezone.now()))) == 39
