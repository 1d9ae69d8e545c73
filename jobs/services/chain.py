"""What waits for a job, directly and further on, released or cancelled as a whole."""

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet

from jobs.models import Event, Job
from jobs.services.events import record
from jobs.services.lifecycle import NotPossible, request_cancel
from jobs.services.wake import wake_workers

BADLY = tuple(status for status in Job.FINISHED if status != Job.Status.COMPLETED)


def chain_of(job: Job) -> list[Job]:
    """Return the waiting jobs that wait for ``job`` or for one another, nearest first."""
    found: dict[int, Job] = {}
    level = _waiting_for(job)
    while level:
        found |= {child.pk: child for child in level}
        level = list(_waiting(depends_on__in=level).exclude(pk__in=found))
    return list(found.values())


def blocked_chain(job: Job) -> list[Job]:
    """Return the chain of a job that ended badly; nothing waits in vain for another."""
    return chain_of(job) if job.status in BADLY else []


@transaction.atomic
def release_chain(parent: Job, *, by: User | None) -> list[Job]:
    """Let the jobs start that wait for the success of one that ended badly; return them.

    Raises:
        NotPossible: nothing waits for it, or one of them needs the weights that it did not leave.
    """
    blocked = _blocked_by(parent)
    if not blocked:
        raise NotPossible(f"no job waits for job {parent.pk} in vain")
    for child in blocked:
        if child.start_from == Job.StartFrom.JOB:
            raise NotPossible(f"job {child.pk} needs the weights of job {parent.pk}: resume that one, or edit this one")
    for child in blocked:
        changed = Job.objects.filter(pk=child.pk, status__in=Job.WAITING)
        if changed.update(dependency_rule=Job.DependencyRule.ANY_END):
            record(child, Event.Kind.RELEASED, by=by, detail=f"without the success of job {parent.pk}")
    transaction.on_commit(wake_workers)
    return blocked


@transaction.atomic
def cancel_chain(parent: Job, *, by: User | None) -> list[Job]:
    """Cancel every waiting job of the chain behind ``parent``; return them.

    Raises:
        NotPossible: nothing waits for it, or one of them ended meanwhile; then none was cancelled.
    """
    chain = chain_of(parent)
    if not chain:
        raise NotPossible(f"no job waits for job {parent.pk}")
    for child in sorted(chain, key=lambda child: child.pk):  # in the order in which all lock jobs
        request_cancel(child, by=by)
    return chain


def _waiting_for(job: Job) -> list[Job]:
    """Return what waits for ``job`` itself: once that has ended, only who needs the success that it had not."""
    if not job.is_finished:
        return list(_waiting(depends_on=job))
    return _blocked_by(job)


def _blocked_by(parent: Job) -> list[Job]:
    if parent.status not in BADLY:
        return []
    return list(_waiting(depends_on=parent, dependency_rule=Job.DependencyRule.SUCCESS))


def _waiting(**which: object) -> QuerySet[Job]:
    return Job.objects.filter(status__in=Job.WAITING, **which).select_related("owner").order_by("pk")
