"""How long a job will run, from those like it that ran before."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from jobs.models import Device, Job, Metric
from jobs.services.history import History

RECENT = 20  # logged steps whose pace a running job shows


def expected_seconds(jobs: Iterable[Job]) -> dict[int, float | None]:
    """Return the seconds that each waiting job is expected to run, by id; ``None`` where nothing is known.

    Of a job that resumes it is what is left. The number of queries is constant.
    """
    history, devices = History(), _devices()
    return {job.pk: _expected(job, history, _wished(job, devices)) for job in jobs}


def remaining_seconds(jobs: Iterable[Job], now: datetime) -> dict[int, float | None]:
    """Return the seconds that each running job is expected to run on, by id; ``None`` where nothing is known.

    The pace that it shows counts more than what others took. The number of queries is constant.
    """
    running = list(_with_pace(jobs))
    if not running:
        return {}
    history, devices = History(), _devices()
    left: dict[int, float | None] = {}
    for job in running:
        elapsed = (now - (job.started_at or now)).total_seconds()
        seconds = _left_by_pace(job, now)
        if seconds is None:
            whole = _expected(job, history, devices.get(job.worker.device_id if job.worker else 0, ("", "")))
            seconds = None if whole is None else whole - elapsed
        left[job.pk] = None if seconds is None else max(_within_limit(seconds, job, elapsed), 0.0)
    return left


def _expected(job: Job, history: History, device: tuple[str, str]) -> float | None:
    steps = _steps(job.params) or job.total_steps or None
    seconds = history.seconds(job, steps, device)
    if seconds is None:
        return None
    done = (job.checkpoint_step or 0) / steps if steps else 0.0
    return _within_limit(seconds * (1 - done if done < 1 else 1), job)


def _steps(params: Any) -> int | None:
    """Return how many steps the parameters ask for; ``None`` also where they are of another version."""
    asked = params.get("max_steps") if isinstance(params, dict) else None
    return asked if isinstance(asked, int) else None


def _within_limit(seconds: float, job: Job, elapsed: float = 0.0) -> float:
    return seconds if job.time_limit is None else min(seconds, 60 * job.time_limit - elapsed)


def _devices() -> dict[int, tuple[str, str]]:
    return {pk: (name, kind) for pk, name, kind in Device.objects.values_list("pk", "name", "kind")}


def _wished(job: Job, devices: dict[int, tuple[str, str]]) -> tuple[str, str]:
    """Return name and kind of the device that a job asks for, as far as it does."""
    return devices.get(job.device_id or 0, ("", job.device_request))


def _with_pace(jobs: Iterable[Job]) -> QuerySet[Job]:
    """Return the jobs with two steps that they logged since they started: the newest, and one some steps back."""
    logged = Metric.objects.filter(job=OuterRef("pk"), time__gte=OuterRef("started_at")).order_by("-step")
    first = logged.order_by("step")

    def back(field: str) -> Coalesce:
        return Coalesce(Subquery(logged.values(field)[RECENT - 1 : RECENT]), Subquery(first.values(field)[:1]))

    newest = {f"newest_{field}": Subquery(logged.values(field)[:1]) for field in ("step", "time")}
    earlier = {f"earlier_{field}": back(field) for field in ("step", "time")}
    return Job.objects.filter(pk__in=[job.pk for job in jobs]).select_related("worker").annotate(**newest, **earlier)


def _left_by_pace(job: Any, now: datetime) -> float | None:
    """Return what the steps that are left take at the pace of the last ones."""
    if not job.total_steps or job.newest_step is None or job.newest_step == job.earlier_step:
        return None
    pace = (job.newest_time - job.earlier_time).total_seconds() / (job.newest_step - job.earlier_step)
    left: float = pace * (job.total_steps - job.newest_step) - (now - job.newest_time).total_seconds()
    return left
