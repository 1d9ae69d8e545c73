"""How many jobs a person may run and have waiting."""

from collections import defaultdict

from jobs.models import Limit


def running_limits() -> dict[int, int | None]:
    """Return how many jobs each person may run at a time, by user id; ``None`` is no limit."""
    rows = {limit.person_id: limit.max_running for limit in Limit.objects.all()}
    everybody = rows.pop(None, None)
    own: dict[int, int | None] = {person: most for person, most in rows.items() if person is not None}
    return defaultdict(lambda: everybody, own)
