"""How much device time counts: half of it after a day."""

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.models import Attempt, Job
from jobs.services.fair_share import decayed, device_time
from tests.jobs.rows import queued

DAY, HOUR = 86_400.0, 3_600.0
DAY_AT_FULL = 124_648.85  # seconds: DAY / ln 2, all that an endless use can come to


def test_what_is_used_this_moment_counts_in_full():
    assert decayed(60, 0) == pytest.approx(60, rel=0.001)


def test_it_counts_half_after_a_day_and_a_quarter_after_two():
    now = decayed(HOUR, 0)
    assert decayed(DAY + HOUR, DAY) == pytest.approx(now / 2)
    assert decayed(2 * DAY + HOUR, 2 * DAY) == pytest.approx(now / 4)


def test_a_use_of_a_whole_day_that_ends_now_counts_as_half_of_an_endless_one():
    # The integral of 2 ** (-t / day) from 0 to one day: (1 - 1/2) day / ln 2.
    assert decayed(DAY, 0) == pytest.approx(DAY_AT_FULL / 2, rel=1e-6)
    assert decayed(100 * DAY, 0) == pytest.approx(DAY_AT_FULL, rel=1e-6)


def test_parts_of_a_use_add_up():
    assert decayed(3 * HOUR, 2 * HOUR) + decayed(2 * HOUR, 0) == pytest.approx(decayed(3 * HOUR, 0))


def ran(owner, *, began, ended, devices=1):
    """Record an attempt between two moments that are so many seconds ago."""
    job, now = queued(owner=owner), timezone.now()
    end = None if ended is None else now - timedelta(seconds=ended)
    start = now - timedelta(seconds=began)
    Attempt.objects.create(
        job=job, number=1, token=Job.new_token(), device_count=devices, started_at=start, ended_at=end
    )
    return job


@pytest.mark.django_db
def test_each_person_has_the_time_of_all_devices_that_were_used():
    ada = ran("ada", began=HOUR, ended=0, devices=2).owner_id
    bob = ran("bob", began=DAY + HOUR, ended=DAY).owner_id
    ran("cleo", began=12 * DAY, ended=11 * DAY)
    hour = decayed(HOUR, 0)
    used = device_time(timezone.now(), {})
    assert used == {ada: pytest.approx(2 * hour, rel=1e-3), bob: pytest.approx(hour / 2, rel=1e-3)}


@pytest.mark.django_db
def test_what_a_running_job_has_still_to_run_counts_and_an_hour_where_that_is_unknown():
    known, unknown = ran("ada", began=60, ended=None), ran("bob", began=60, ended=None, devices=3)
    used = device_time(timezone.now(), {known.pk: 100.0, unknown.pk: None})
    assert used[known.owner_id] == pytest.approx(160, rel=0.01)
    assert used[unknown.owner_id] == pytest.approx(3 * (60 + HOUR), rel=0.01)
