"""Where an operator puts a waiting job, before priority, fair share and age."""

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from jobs.models import Event, Job
from jobs.services.events import record
from jobs.services.lifecycle import refusal
from jobs.services.placement import Plan, plan
from jobs.services.schedule import queue_state
from jobs.services.wake import wake_workers


def run_next(job: Job, *, by: User | None) -> None:
    """Put a waiting job before all others.

    Raises:
        NotPossible: it does not wait.
    """
    move(job, 1, by=by)


@transaction.atomic
def move(job: Job, position: int, *, by: User | None) -> None:
    """Put a waiting job at ``position`` of the queue, from 1, and hold the ones before it where they stand.

    Raises:
        NotPossible: it does not wait.
    """
    others = [pk for pk in queue_order(plan(queue_state(timezone.now()))) if pk != job.pk]
    order = [*others[: position - 1], job.pk, *others[position - 1 :]]
    waiting = _locked_places([*order])
    if job.pk not in waiting:
        raise refusal(job)
    ahead = [pk for pk in order[:position] if pk in waiting]
    placed = sorted((pk for pk in waiting if waiting[pk] and pk not in ahead), key=lambda pk: -waiting[pk])
    for place, pk in enumerate(reversed([*ahead, *placed]), start=1):
        Job.objects.filter(pk=pk).update(place=place)
    record(job, Event.Kind.MOVED, by=by, detail=f"to position {ahead.index(job.pk) + 1}")
    transaction.on_commit(wake_workers)


@transaction.atomic
def give_back_place(job: Job, *, by: User | None) -> None:
    """Let a job stand where the queue's own rules put it."""
    if Job.objects.filter(pk=job.pk, place__gt=0).update(place=0):
        record(job, Event.Kind.MOVED, by=by, detail="back to where the queue's rules put it")


def queue_order(made: Plan) -> list[int]:
    """Return the jobs whose turn it is or comes, first first; then those that something else keeps."""
    return [*made.positions, *(pk for pk in made.standings if pk not in made.positions)]


def _locked_places(jobs: list[int]) -> dict[int, int]:
    """Return the places of those that still wait, and of all others that have one; in one order of locking."""
    waiting = Job.objects.filter(status__in=Job.WAITING)
    rows = (waiting.filter(pk__in=jobs) | waiting.filter(place__gt=0)).order_by("pk")
    return dict(rows.select_for_update(no_key=True).values_list("pk", "place"))
