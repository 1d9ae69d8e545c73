"""Expected against actual starts, on the real stack: twenty jobs of known kinds on two devices."""

import random
import statistics

import pytest
from django.utils import timezone

from jobs.models import Job
from jobs.services.forecast import expected_starts
from jobs.services.schedule import queue_state
from tests.e2e.live_stack import asked, wait_for, wait_for_status

pytestmark = pytest.mark.e2e

KNOWN = (5, 15, 30)  # steps of a tenth of a second
TOLD_BY_PACE = 22  # no job of so many steps ran before


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)  # the database makes no difference to it
def test_the_median_start_is_off_by_at_most_three_tenths_of_the_wait(live_pair):
    for job in [asked(steps=steps) for steps in KNOWN]:
        wait_for_status(job, Job.Status.COMPLETED)
    lengths = [*KNOWN, TOLD_BY_PACE] * 5
    random.Random(0).shuffle(lengths)
    expected = {}
    for steps in lengths:
        job = asked(steps=steps)
        expected[job] = expected_starts(queue_state(timezone.now())).get(job.pk)
    wait_for(lambda: not Job.objects.filter(status__in=Job.UNFINISHED).exists(), 90)
    assert None not in expected.values()
    errors = [error(job, start) for job, start in expected.items()]
    print(f"relative errors of {len(errors)} expected starts: median {statistics.median(errors):.0%},", end=" ")
    print("each " + " ".join(f"{each:.0%}" for each in errors))
    assert statistics.median(errors) <= 0.3


def error(job, expected):
    """Return how far the expected start was off, as a share of the wait."""
    job.refresh_from_db()
    wait = (job.started_at - job.queued_at).total_seconds()
    return abs((expected - job.started_at).total_seconds()) / wait
