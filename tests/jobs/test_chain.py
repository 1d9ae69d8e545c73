"""Jobs that wait for one that ended badly."""

import pytest

from jobs.models import Event, Job
from jobs.services.chain import blocked_chain, cancel_chain, chain_of, release_chain
from jobs.services.lifecycle import NotPossible
from jobs.services.reasons import waiting_reasons
from tests.jobs.rows import person, queued, worker

pytestmark = pytest.mark.django_db


def end(job, status):
    Job.objects.filter(pk=job.pk).update(status=status)
    job.refresh_from_db()


@pytest.fixture
def chain():
    """A job that failed, and three behind it: two wait for it, one for the first of these."""
    worker()
    parent = queued()
    first, second = queued(depends_on=parent), queued(depends_on=parent, owner="bob")
    third = queued(depends_on=first)
    end(parent, Job.Status.FAILED)
    return parent, first, second, third


def test_the_chain_is_everything_that_waits_behind_a_job(chain):
    parent, first, second, third = chain
    assert chain_of(parent) == blocked_chain(parent) == [first, second, third]
    reasons = waiting_reasons([first, second, third])
    assert list(reasons.values()) == [
        f"job {parent.pk} failed",
        f"job {parent.pk} failed",
        f"waiting for job {first.pk}",
    ]


def test_what_runs_or_has_ended_and_what_is_behind_it_is_no_part_of_the_chain(chain):
    parent, first, second, _ = chain
    end(first, Job.Status.RUNNING)
    assert chain_of(parent) == [second]


def test_a_job_that_succeeded_blocks_nobody(chain):
    parent = chain[0]
    end(parent, Job.Status.COMPLETED)
    assert blocked_chain(parent) == []
    with pytest.raises(NotPossible, match="in vain"):
        release_chain(parent, by=person())


def test_a_released_chain_starts_without_its_parent_and_keeps_its_inner_order(chain):
    parent, first, second, third = chain
    assert release_chain(parent, by=person()) == [first, second]
    reasons = waiting_reasons(Job.objects.filter(pk__in=[first.pk, second.pk, third.pk]))
    assert reasons == {
        first.pk: "position 1 in the queue",
        second.pk: "position 2 in the queue",
        third.pk: f"waiting for job {first.pk}",
    }
    told = Event.objects.filter(job=first, kind="released").values_list("actor__username", "detail").get()
    assert told == ("ada", f"without the success of job {parent.pk}")


def test_a_chain_that_needs_its_parents_weights_is_not_released_not_even_in_part(chain):
    parent, first, *_ = chain
    end(parent, Job.Status.QUEUED)
    heir = queued(start_from="job", depends_on=parent)
    end(parent, Job.Status.FAILED)
    with pytest.raises(NotPossible, match=f"job {heir.pk} needs the weights of job {parent.pk}"):
        release_chain(parent, by=person())
    first.refresh_from_db()
    assert first.dependency_rule == Job.DependencyRule.SUCCESS


def test_a_cancelled_chain_leaves_nothing_waiting(chain):
    parent, first, second, third = chain
    assert cancel_chain(parent, by=person("bob")) == [first, second, third]
    rows = Job.objects.filter(pk__in=[first.pk, second.pk, third.pk]).values_list("status", "cause")
    assert set(rows) == {("cancelled", "cancelled by bob")}
    with pytest.raises(NotPossible, match=f"no job waits for job {parent.pk}"):
        cancel_chain(parent, by=person())


def test_who_waits_only_for_an_end_that_came_is_no_part_of_the_chain(chain):
    parent, first, second, third = chain
    free = queued(depends_on=parent, dependency_rule=Job.DependencyRule.ANY_END)
    assert chain_of(parent) == [first, second, third]
    cancel_chain(parent, by=person())
    free.refresh_from_db()
    assert free.status == Job.Status.QUEUED


def test_behind_a_job_that_succeeded_nothing_is_cancelled(chain):
    parent, first, *_ = chain
    end(parent, Job.Status.COMPLETED)
    with pytest.raises(NotPossible, match=f"no job waits for job {parent.pk}"):
        cancel_chain(parent, by=person())
    first.refresh_from_db()
    assert first.status == Job.Status.QUEUED
