"""When each waiting job is expected to start."""

from datetime import datetime


def expected_starts(now: datetime) -> dict[int, datetime]:
    """Return when queued jobs are expected to start, by job id; those of which it cannot be known are left out."""
    return {}
