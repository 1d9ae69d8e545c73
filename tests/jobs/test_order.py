"""Where an operator puts jobs."""

import pytest
from django.utils import timezone

from jobs.models import Attempt, Event, Job
from jobs.services.attempts import finish_attempt
from jobs.services.claim import claim_next
from jobs.services.lifecycle import NotPossible, hold_job, resume_job
from jobs.services.order import give_back_place, move, queue_order, run_next
from jobs.services.placement import plan
from jobs.services.schedule import queue_state
from tests.jobs.rows import person, queued, worker

pytestmark = pytest.mark.django_db


def order():
    return queue_order(plan(queue_state(timezone.now())))


@pytest.fixture
def five():
    worker()
    return [queued().pk for _ in range(5)]


def test_run_next_comes_before_every_priority(five):
    Job.objects.filter(pk=(urgent := queued()).pk).update(priority=Job.Priority.HIGH)
    run_next(Job.objects.get(pk=five[3]), by=person())
    assert order() == [five[3], urgent.pk, five[0], five[1], five[2], five[4]]
    assert claim_next(worker("other", key="cpu:other")).job_id == five[3]


@pytest.mark.parametrize(
    ("position", "expected"), [(1, "DABCE"), (2, "ADBCE"), (4, "ABCDE"), (5, "ABCED"), (9, "ABCED")]
)
def test_a_moved_job_stands_exactly_where_it_was_put(five, position, expected):
    move(Job.objects.get(pk=five[3]), position, by=person())
    assert order() == [five["ABCDE".index(name)] for name in expected]


def test_what_was_placed_before_stays_below_what_is_placed_now(five):
    run_next(Job.objects.get(pk=five[4]), by=person())
    run_next(Job.objects.get(pk=five[2]), by=person())
    assert order() == [five[2], five[4], five[0], five[1], five[3]]


def test_a_job_that_waits_for_another_can_be_placed_and_starts_first_once_it_may(five):
    child = queued(depends_on=Job.objects.get(pk=five[0]))
    run_next(child, by=person())
    assert order()[0] == five[0]
    finish_attempt(claim_next(worker("other", key="cpu:other")), Attempt.Outcome.COMPLETED, result={})
    assert order()[0] == child.pk


def test_the_rules_take_a_placed_job_back(five):
    run_next(job := Job.objects.get(pk=five[3]), by=person())
    give_back_place(job, by=person("bob"))
    assert order() == five
    assert list(Event.objects.filter(kind="moved", job=job).values_list("actor__username", "detail")) == [
        ("bob", "back to where the queue's rules put it"),
        ("ada", "to position 1"),
    ]


def test_only_a_waiting_job_moves_and_a_resumed_one_has_lost_its_place(five):
    run_next(job := Job.objects.get(pk=five[2]), by=person())
    attempt = claim_next(worker("other", key="cpu:other"))
    with pytest.raises(NotPossible, match=f"job {job.pk} is running"):
        run_next(job, by=person())
    finish_attempt(attempt, Attempt.Outcome.FAILED, cause="it broke", result={})
    with pytest.raises(NotPossible, match=f"job {job.pk} is already failed"):
        move(job, 2, by=person())
    job.refresh_from_db()
    resume_job(job, by=person())
    assert (Job.objects.get(pk=job.pk).place, order()[0]) == (0, five[0])


def test_a_held_job_can_be_placed(five):
    hold_job(job := Job.objects.get(pk=five[1]), by=person())
    run_next(job, by=person())
    assert order() == [five[0], five[2], five[3], five[4]]
