"""When a window is open. Its times are wall-clock times of its zone, so daylight saving moves it along."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from jobs.models import Window

DAY = timedelta(days=1)
AHEAD = 9  # days; a window opens at least once a week


def is_open(window: Window, now: datetime) -> bool:
    """Tell whether a job may start at ``now``."""
    return any(start <= now < end for start, end in openings(window, now))


def next_opening(window: Window, now: datetime) -> datetime | None:
    """Return when it opens next, in UTC; ``None`` for a window without weekdays."""
    return next((start for start, _ in openings(window, now) if start > now), None)


def closes_at(window: Window, now: datetime) -> datetime | None:
    """Return when the opening around ``now`` ends, in UTC; ``None`` when it is closed or never closes."""
    end: datetime | None = None
    for start, until in openings(window, now):
        if start <= (end or now) < until:
            end = until
    return end if end is None or end < now + (AHEAD - 2) * DAY else None


def openings(window: Window, now: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Yield the openings from yesterday's to those a week ahead, in UTC, each from its start to its end.

    A time that the spring's change leaves out is taken an hour later; of one that the autumn's repeats, an opening
    takes the first and a closing the second. What is empty then is left out.
    A window of an unknown zone never opens.
    """
    zone = zone_of(window)
    if zone is None:
        return
    today = now.astimezone(zone).date()
    for day in (today + n * DAY for n in range(-2, AHEAD)):
        if str(day.weekday()) not in window.weekdays:
            continue
        last = day if window.closes > window.opens else day + DAY
        start = datetime.combine(day, window.opens, zone).astimezone(UTC)
        end = datetime.combine(last, window.closes, zone)
        latest = max(end.replace(fold=fold).astimezone(UTC) for fold in (0, 1))  # fold 1 of a left-out time is earlier
        if start < latest:
            yield start, latest


def zone_of(window: Window) -> ZoneInfo | None:
    """Return its time zone; ``None`` where this host knows none of that name: other windows shall open all the same."""
    try:
        return ZoneInfo(window.time_zone)
    except (LookupError, ValueError, OSError):
        return None
