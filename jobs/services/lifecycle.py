"""The verbs of a job. Each is one conditional UPDATE, so that of two who act at once one wins and the other is told."""

import logging
from collections.abc import Iterable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import pydantic
from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F, Max
from django.utils import timezone

from jobs.models import Attempt, Device, Event, Host, Job, Metric, Sample, Worker
from jobs.services.duration_keys import duration_keys
from jobs.services.events import record
from jobs.services.needs import hold_weights
from jobs.services.submit import frozen_command
from jobs.services.wake import wake_workers
from jobs.services.wishes import wrong_time_limit
from trainers.cli import field_errors

CHANGEABLE_ON_RESUME = frozenset(
    ("epochs", "max_steps", "learning_rate", "log_interval", "save_interval", "eval_interval", "stop_at", "num_workers")
)

logger = logging.getLogger(__name__)


class NotPossible(Exception):
    """The job is in a state in which this cannot be done; the message says which."""


class Fenced(Exception):
    """The lease belongs to another: the attempt must end and write nothing more."""


def hold_job(job: Job, *, by: User | None) -> None:
    """Keep a queued job from starting."""
    _move(job, (Job.Status.QUEUED,), by=by, kind=Event.Kind.HELD, status=Job.Status.HELD)


def release_job(job: Job, *, by: User | None) -> None:
    """Let a held job start."""
    _move(job, (Job.Status.HELD,), by=by, kind=Event.Kind.RELEASED, status=Job.Status.QUEUED, queued_at=timezone.now())


def request_cancel(job: Job, *, by: User | None) -> None:
    """Cancel a waiting job now, or ask the worker of a running one to end it."""
    asked = {"cancel_requested_at": timezone.now(), "cancel_requested_by": by}
    done = {"status": Job.Status.CANCELLED, "finished_at": timezone.now(), "cause": _cancelled_by(by)}
    with transaction.atomic():
        if Job.objects.filter(pk=job.pk, status__in=Job.WAITING).update(**asked, **done):
            record(job, Event.Kind.ENDED, by=by, detail=_cancelled_by(by))
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
        ValidationError: a change is not allowed or out of bounds; messages by field name.
    """
    parameters = dict(changes or {})
    time_limit = parameters.pop("time_limit", job.time_limit)
    if wrong := wrong_time_limit(time_limit):
        raise ValidationError({"time_limit": wrong})
    config = _changed_config(job, parameters)
    goes_on = job.checkpoint_step is not None
    with transaction.atomic():
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


def start_attempt(job: Job, worker: Worker, *, devices: Sequence[int] = ()) -> Attempt | None:
    """Give a queued job and ``devices`` (its own) to a worker under a fresh lease; ``None`` when another was faster."""
    now, token, devices = timezone.now(), Job.new_token(), devices or (worker.device_id,)
    with transaction.atomic():
        taken = Job.objects.filter(pk=job.pk, status=Job.Status.QUEUED, cancel_requested_at=None).update(
            status=Job.Status.RUNNING,
            lease_token=token,
            lease_until=now + timedelta(seconds=settings.NIGHTSHIFT_LEASE),
            worker=worker,
            started_at=now,
            finished_at=None,
            cause="",
            advice="",
            yield_reason="",
        )
        if not taken:
            return None
        job.refresh_from_db()
        number = (job.attempts.aggregate(last=Max("number"))["last"] or 0) + 1
        resume = (job.resume or number > 1) and not _starts_over(job, worker)
        _forget_beyond_checkpoint(job)
        record(job, Event.Kind.STARTED, detail=f"attempt {number} on {worker.name}")
        attempt = Attempt.objects.create(
            job=job,
            number=number,
            token=token,
            worker=worker,
            device=worker.device,
            device_count=len(devices),
            command=resumed(job.command) if resume else job.command,
            started_at=now,
        )
        attempt.devices.set(devices)
        if Device.objects.filter(pk__in=devices, attempt=None).update(attempt=attempt) != len(devices):
            transaction.set_rollback(True)
            return None
        return attempt


def resumed(command: list[str]) -> list[str]:
    """Return the command with ``--from_resume 1``."""
    command = list(command)
    if "--from_resume" not in command:
        return [*command, "--from_resume", "1"]
    command[command.index("--from_resume") + 1] = "1"
    return command


@transaction.atomic
def finish_attempt(
    attempt: Attempt,
    outcome: str,
    *,
    cause: str = "",
    advice: str = "",
    exit_code: int | None = None,
    result: dict[str, Any] | None,
) -> None:
    """Record how the attempt ended; the job ends the same way.

    Raises:
        Fenced: the attempt no longer holds the lease.
    """
    asked = Job.objects.filter(pk=attempt.job_id, cancel_requested_at__isnull=False)
    if outcome == Attempt.Outcome.TIMED_OUT and asked.exists():
        outcome = Attempt.Outcome.CANCELLED
    if outcome == Attempt.Outcome.CANCELLED:
        cause = "; ".join(filter(None, (_cancelled_by(_who_cancelled(attempt.job)), cause)))
    ended = {"status": outcome, "finished_at": timezone.now(), "advice": advice[:500], "result": result or {}}
    _end(attempt, outcome, cause, exit_code, **ended)
    record(attempt.job, Event.Kind.ENDED, detail=f"{attempt.get_outcome_display()}: {cause}".removesuffix(": "))
    transaction.on_commit(partial(wake_workers, besides=attempt.worker_id or 0))


@transaction.atomic
def requeue_attempt(
    attempt: Attempt, outcome: str, *, cause: str, advice: str = "", exit_code: int | None = None
) -> None:
    """Put the job back in the queue, to continue from its checkpoint; a LOST attempt only so many times.

    Raises:
        Fenced: the attempt no longer holds the lease.
    """
    job = attempt.job
    lost = outcome == Attempt.Outcome.LOST
    if lost and job.requeues >= settings.NIGHTSHIFT_MAX_REQUEUES:
        cause = f"{cause}; given up after {job.requeues} restarts"
        return finish_attempt(attempt, outcome, cause=cause, advice=advice, exit_code=exit_code, result=None)
    back = {
        "status": Job.Status.QUEUED,
        "advice": advice[:500],
        "resume": True,
        "queued_at": timezone.now(),
        "requeues": F("requeues") + int(lost),
    }
    _end(attempt, outcome, cause, exit_code, **back)
    if not _cancel_if_asked(job):
        record(job, Event.Kind.REQUEUED, detail=cause)
    transaction.on_commit(partial(wake_workers, besides=attempt.worker_id or 0))
    return None


def _cancel_if_asked(job: Job) -> bool:
    """Cancel a job that came back to the queue after a person asked to cancel it; nobody else would."""
    asked = Job.objects.filter(pk=job.pk, status=Job.Status.QUEUED, cancel_requested_at__isnull=False)
    cause = _cancelled_by(_who_cancelled(job))
    cancelled = asked.update(status=Job.Status.CANCELLED, finished_at=timezone.now(), cause=cause)
    if cancelled:
        record(job, Event.Kind.ENDED, detail=cause)
    return bool(cancelled)


def _end(attempt: Attempt, outcome: str, cause: str, exit_code: int | None, **changes: Any) -> None:
    changes |= {"cause": cause[:500], "lease_token": None, "lease_until": None, "yield_reason": ""}
    held = Job.objects.filter(pk=attempt.job_id, lease_token=attempt.token, status=Job.Status.RUNNING)
    if not held.update(**changes):
        raise Fenced(f"attempt {attempt} no longer holds the lease")
    attempt.outcome, attempt.cause, attempt.exit_code = outcome, cause[:500], exit_code
    attempt.ended_at = attempt.ended_at or timezone.now()
    attempt.save(update_fields=["outcome", "cause", "exit_code", "ended_at"])
    # In the order in which a claim locks them: an UPDATE's own order could meet it half-way.
    held_devices = (
        Device.objects.filter(attempt=attempt)
        .order_by("pk")
        .select_for_update(no_key=True)
        .values_list("pk", flat=True)
    )
    Device.objects.filter(pk__in=list(held_devices)).update(attempt=None)


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


def _who_cancelled(job: Job) -> User | None:
    return User.objects.filter(pk__in=Job.objects.filter(pk=job.pk).values("cancel_requested_by")).first()


def _cancelled_by(by: User | None) -> str:
    return f"cancelled by {by.get_username()}" if by else "cancelled"


def _changed_config(job: Job, changes: dict[str, Any]) -> Any:
    if foreign := sorted(set(changes) - CHANGEABLE_ON_RESUME):
        raise ValidationError({name: ["cannot be changed on resume"] for name in foreign})
    try:
        return job.config().replaced(**changes)
    except pydantic.ValidationError as error:
        raise ValidationError({name: [message] for name, message in field_errors(error).items()}) from None


def _starts_over(job: Job, worker: Worker) -> bool:
    """Tell whether the checkpoint lies where this worker cannot read it, and forget it then."""
    if job.files_removed:
        return _starts_without_files(job)
    if job.checkpoint_host in ("", worker.host):
        return False
    homes = dict(Host.objects.values_list("name", "home"))
    if homes.get(worker.host) and homes.get(worker.host) == homes.get(job.checkpoint_host):
        return False
    told = f"the checkpoint at step {job.checkpoint_step} is on {job.checkpoint_host}, not on {worker.host}"
    record(job, Event.Kind.STARTED_OVER, detail=told)
    job.checkpoint_step, job.checkpoint_host, job.cause = None, "", f"started over: {told}"[:500]
    job.save(update_fields=["checkpoint_step", "checkpoint_host", "cause"])
    return True


def _starts_without_files(job: Job) -> bool:
    """Say that the checkpoint was removed; what the job writes from now on is new."""
    told = f"the checkpoint was removed on {job.files_removed_at:%Y-%m-%d}"
    record(job, Event.Kind.STARTED_OVER, detail=told)
    job.files_removed, job.files_removed_at = "", None
    job.save(update_fields=["files_removed", "files_removed_at"])
    return True


def _forget_beyond_checkpoint(job: Job) -> None:
    kept = -1 if job.checkpoint_step is None else job.checkpoint_step
    for model in (Metric, Sample):
        model.objects.filter(job=job, step__gt=kept).delete()
    job.step = max(kept, 0)
    job.save(update_fields=["step"])
