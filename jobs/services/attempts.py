"""What a worker writes of an attempt: its start, its end, its way back to the queue. A lease guards every write."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Max
from django.utils import timezone

from jobs.models import Attempt, Device, Event, Host, Job, Metric, Sample, Worker
from jobs.services.events import record
from jobs.services.lifecycle import cancelled_by, who_cancelled
from jobs.services.wake import wake_workers


class Fenced(Exception):
    """The lease belongs to another: the attempt must end and write nothing more."""


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
        cause = "; ".join(filter(None, (cancelled_by(who_cancelled(attempt.job)), cause)))
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
    cause = cancelled_by(who_cancelled(job))
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
