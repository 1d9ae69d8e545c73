"""What a person asks of a job. Each verb is one conditional UPDATE, so that of two who act at once one wins."""

from collections.abc import Iterable
from typing import Any

import pydantic
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from jobs.models import Event, Job
from jobs.services.duration_keys import duration_keys
from jobs.services.events import record
from jobs.services.limits import refuse_more_waiting
from jobs.services.needs import hold_weights
from jobs.services.submit import frozen_command
from jobs.services.wake import wake_workers
from jobs.services.wishes import wrong_time_limit
from trainers.cli import field_errors

CHANGEABLE_ON_RESUME = frozenset(
    ("epochs", "max_steps", "learning_rate", "log_interval", "save_interval", "eval_interval", "stop_at", "num_workers")
)


class NotPossible(Exception):
    """The job is in a state in which this cannot be done; the message says which."""


def hold_job(job: Job, *, by: User | None) -> None:
    """Keep a queued job from starting."""
    _move(job, (Job.Status.QUEUED,), by=by, kind=Event.Kind.HELD, status=Job.Status.HELD)


def release_job(job: Job, *, by: User | None) -> None:
    """Let a held job start."""
    _move(job, (Job.Status.HELD,), by=by, kind=Event.Kind.RELEASED, status=Job.Status.QUEUED, queued_at=timezone.now())


def request_cancel(job: Job, *, by: User | None) -> None:
    """Cancel a waiting job now, or ask the worker of a running one to end it."""
    asked = {"cancel_requested_at": timezone.now(), "cancel_requested_by": by}
    done = {"status": Job.Status.CANCELLED, "finished_at": timezone.now(), "cause": cancelled_by(by)}
    with transaction.atomic():
        # Wait for who changes the row now: both updates below would miss a job that is on its way back to the queue.
        list(Job.objects.select_for_update(no_key=True).filter(pk=job.pk).values_list("pk"))
        if Job.objects.filter(pk=job.pk, status__in=Job.WAITING).update(**asked, **done):
            record(job, Event.Kind.ENDED, by=by, detail=cancelled_by(by))
        elif Job.objects.filter(pk=job.pk, status=Job.Status.RUNNING, cancel_requested_at=None).update(**asked):
            record(job, Event.Kind.CANCEL_REQUESTED, by=by)
        else:
            raise refusal(job)
    job.refresh_from_db()


def resume_job(job: Job, *, by: User | None, changes: dict[str, Any] | None = None) -> None:
    """Put a finished job back in the queue, to continue from its checkpoint with ``changes``.

    They are of its parameters, and of its time limit, of which nothing is used then.

    Raises:
        NotPossible: the job is not finished, or its checkpoint was removed meanwhile.
        ValidationError: a change is not allowed or out of bounds, or its owner has too many jobs waiting; by field.
    """
    parameters = dict(changes or {})
    time_limit = parameters.pop("time_limit", job.time_limit)
    if wrong := wrong_time_limit(time_limit):
        raise ValidationError({"time_limit": wrong})
    config = _changed_config(job, parameters)
    goes_on = job.checkpoint_step is not None
    with transaction.atomic():
        refuse_more_waiting(job.owner)
        if not goes_on:  # it starts over, and needs what it started from
            hold_weights(config.model_dump(mode="json"), start_from=job.start_from)
        _move(
            job,
            Job.FINISHED,
            by=by,
            kind=Event.Kind.RESUMED,
            detail=", ".join(f"{name} {value}" for name, value in (changes or {}).items()),
            status=Job.Status.QUEUED,
            resume=True,
            time_limit=time_limit,
            params=config.model_dump(mode="json"),
            command=frozen_command(config, job.run_dir, job.device_count),
            **duration_keys(config, job),
            cause="",
            advice="",
            result={},
            requeues=0,
            place=0,
            queued_at=timezone.now(),
            finished_at=None,
            cancel_requested_at=None,
            cancel_requested_by=None,
        )
        if goes_on and job.checkpoint_step is None:  # nobody held what it starts from now
            raise NotPossible(f"the checkpoint of job {job.pk} was removed meanwhile; resume it again to start over")


def request_yield(job: Job, reason: str, *, by: User | None = None) -> bool:
    """Ask the worker of a running job to save and put it back in the queue; tell whether that was news."""
    with transaction.atomic():
        asked = Job.objects.filter(pk=job.pk, status=Job.Status.RUNNING, yield_reason="").update(
            yield_reason=reason[:200]
        )
        if asked:
            record(job, Event.Kind.YIELD_REQUESTED, by=by, detail=reason)
    return bool(asked)


def _move(job: Job, allowed: Iterable[str], *, by: User | None, kind: str, detail: str = "", **changes: Any) -> None:
    with transaction.atomic():
        if not Job.objects.filter(pk=job.pk, status__in=tuple(allowed)).update(**changes):
            raise refusal(job)
        record(job, kind, by=by, detail=detail)
        transaction.on_commit(wake_workers)
    job.refresh_from_db()


def refusal(job: Job) -> NotPossible:
    """Return why nothing can be done to a job as it stands now."""
    job.refresh_from_db()
    if job.status == Job.Status.RUNNING and job.cancel_requested_at is not None:
        return NotPossible(f"job {job.pk} is already being cancelled")
    word = "already " if job.is_finished else ""
    return NotPossible(f"job {job.pk} is {word}{job.get_status_display().lower()}")


def who_cancelled(job: Job) -> User | None:
    return User.objects.filter(pk__in=Job.objects.filter(pk=job.pk).values("cancel_requested_by")).first()


def cancelled_by(by: User | None) -> str:
    return f"cancelled by {by.get_username()}" if by else "cancelled"


def _changed_config(job: Job, changes: dict[str, Any]) -> Any:
    if foreign := sorted(set(changes) - CHANGEABLE_ON_RESUME):
        raise ValidationError({name: ["cannot be changed on resume"] for name in foreign})
    try:
        return job.config().replaced(**changes)
    except pydantic.ValidationError as error:
        raise ValidationError({name: [message] for name, message in field_errors(error).items()}) from None
