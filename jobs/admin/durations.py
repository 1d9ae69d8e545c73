"""Stretches of time, as people say them."""

from datetime import datetime

from django.utils import timezone
from django.utils.translation import gettext as _

from jobs.models import Job

MINUTE, HOUR, DAY = 60, 3600, 86400


def short_duration(seconds: float) -> str:
    """Return ``42 s``, ``3 min 05 s``, ``1 h 05 min`` or ``2 d 3 h``."""
    whole = max(int(seconds), 0)
    if whole < MINUTE:
        return _("%(s)d s") % {"s": whole}
    if whole < HOUR:
        return _("%(m)d min %(s)02d s") % {"m": whole // MINUTE, "s": whole % MINUTE}
    if whole < DAY:
        return _("%(h)d h %(m)02d min") % {"h": whole // HOUR, "m": whole % HOUR // MINUTE}
    return _("%(d)d d %(h)d h") % {"d": whole // DAY, "h": whole % DAY // HOUR}


def waiting_time(job: Job) -> str:
    """Return how long a job waited since it was last queued, or nothing."""
    if job.queued_at is None:
        return ""
    started = job.started_at if job.started_at and job.started_at >= job.queued_at else None
    return between(job.queued_at, started or job.finished_at)


def running_time(job: Job) -> str:
    """Return how long a job's last attempt ran, or nothing."""
    if job.started_at is None or job.status in Job.WAITING:
        return ""
    return between(job.started_at, job.finished_at)


def between(start: datetime, end: datetime | None) -> str:
    """Return the time from ``start`` to ``end``, or to now."""
    return short_duration(((end or timezone.now()) - start).total_seconds())
