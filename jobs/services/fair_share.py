"""How much device time each person had lately."""

import math
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db.models import Q

from jobs.models import Attempt

HALF_LIFE = 86_400.0  # seconds: what was used a day ago counts half
FORGOTTEN = timedelta(days=10)  # by then a thousandth is left
UNKNOWN_JOB = 3_600.0  # seconds that a job of no known kind counts in advance


def device_time(now: datetime, remaining: Mapping[int, float | None]) -> dict[int, float]:
    """Return the decayed device seconds of each person, by user id.

    ``remaining``: the seconds that each running job is expected to take from now, by job id. They count as if they
    had been used, so that nobody gets every device because the first minutes of his jobs are few.
    """
    used: dict[int, float] = defaultdict(float)
    recent = Attempt.objects.filter(Q(ended_at=None) | Q(ended_at__gte=now - FORGOTTEN))
    rows = recent.values_list("job_id", "job__owner_id", "started_at", "ended_at", "device_count")
    for job, owner, began, ended, count in rows:
        used[owner] += count * decayed((now - began).total_seconds(), (now - (ended or now)).total_seconds())
        if ended is None and job in remaining:
            used[owner] += count * in_advance(remaining[job])
    return dict(used)


def decayed(began: float, ended: float) -> float:
    """Return what is left of a use that began and ended so many seconds ago: each second halves within a day.

    The integral of ``2 ** (-t / HALF_LIFE)`` from ``ended`` to ``began``.
    """
    scale = HALF_LIFE / math.log(2)
    return scale * (2 ** (-ended / HALF_LIFE) - 2 ** (-began / HALF_LIFE))


def in_advance(seconds: float | None) -> float:
    """Return what a job that has still to run counts."""
    return UNKNOWN_JOB if seconds is None else seconds
