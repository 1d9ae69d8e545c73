"""How long a job will run, from those of its kind that ran before."""

from collections.abc import Iterable
from datetime import datetime

from jobs.models import Job


def expected_seconds(jobs: Iterable[Job]) -> dict[int, float | None]:
    """Return the seconds that each waiting job is expected to run, by id; ``None`` where nothing is known."""
    return {job.pk: None for job in jobs}


def remaining_seconds(jobs: Iterable[Job], now: datetime) -> dict[int, float | None]:
    """Return the seconds that each running job is expected to run on, by id; ``None`` where nothing is known."""
    return {job.pk: None for job in jobs}
