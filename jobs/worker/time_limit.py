"""How long a job has run since a person queued it, against its time limit."""

import contextlib
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.utils import timezone

from jobs.models import Attempt, Event, Job
from jobs.services.events import record

WARN_AT = (80, 90)  # per cent of the limit


class TimeLimit:
    """Measure an attempt, on top of the earlier ones. From here on the monotonic clock counts: the wall's may jump."""

    def __init__(self, attempt: Attempt, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.minutes = attempt.job.time_limit
        self._job = attempt.job
        self._used_before = seconds_used(attempt.job, timezone.now())
        self._clock, self._began = clock, clock()
        self._written: set[str] = set()

    def __str__(self) -> str:
        return spelled(self.minutes or 0)

    def is_reached(self) -> bool:
        """Tell whether the job has run as long as it may."""
        return self._percent() >= 100

    def warn(self, log: Path) -> None:
        """Write each warning that is due to the job's history and its log, unless an earlier attempt wrote it."""
        for percent in WARN_AT:
            detail = f"{percent} % of the time limit of {self} is used"
            if self._percent() >= percent and detail not in self._written:
                self._write_once(detail, log)
                self._written.add(detail)

    def _write_once(self, detail: str, log: Path) -> None:
        told = self._job.events.filter(kind=Event.Kind.WARNED, detail=detail, created_at__gte=last_resumed(self._job))
        if not told.exists():
            record(self._job, Event.Kind.WARNED, detail=detail)
            with contextlib.suppress(OSError), log.open("a") as file:  # a full disk costs lines, never the trainer
                file.write(f"\n[{detail}]\n")

    def _percent(self) -> float:
        minutes = self.minutes  # another thread may change it
        used = self._used_before + self._clock() - self._began
        return used / (60 * minutes) * 100 if minutes else 0.0


def seconds_used(job: Job, now: datetime) -> float:
    """Return how long the attempts of a job ran since a person queued it; the last one may still run."""
    attempts = job.attempts.filter(started_at__gte=last_resumed(job)).values_list("started_at", "ended_at")
    return sum(((ended or now) - started for started, ended in attempts), timedelta()).total_seconds()


def last_resumed(job: Job) -> datetime:
    """Return when a person last resumed the job; what was before that no longer counts. Long ago when nobody did."""
    resumed = job.events.filter(kind=Event.Kind.RESUMED).values_list("created_at", flat=True).first()
    return resumed or datetime.fromtimestamp(0, UTC)


def spelled(minutes: int) -> str:
    """Return minutes as people say them: 8 h, 1 h 30 min, 5 min."""
    hours, rest = divmod(minutes, 60)
    return " ".join(filter(None, (f"{hours} h" if hours else "", f"{rest} min" if rest or not hours else "")))
