"""When windows are open: across midnight, on some weekdays, and in the nights in which clocks change."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from jobs.models import Window
from jobs.services.windows import closes_at, is_open, next_opening, openings

BERLIN, NEW_YORK, SHANGHAI = "Europe/Berlin", "America/New_York", "Asia/Shanghai"
EVERY_DAY, FRIDAY = "0123456", "4"


def window(zone=BERLIN, *, opens=time(20), closes=time(8), weekdays=EVERY_DAY):
    return Window(name="night", time_zone=zone, weekdays=weekdays, opens=opens, closes=closes)


def utc(month, day, hour=0, minute=0):
    return datetime(2026, month, day, hour, minute, tzinfo=UTC)


def opening_around(found, now):
    """Return the one opening that holds ``now``."""
    [opening] = [(start, end) for start, end in openings(found, now) if start <= now < end]
    return opening


def test_a_night_is_open_from_its_opening_up_to_its_closing():
    night = window(SHANGHAI)  # 20:00 there is 12:00 UTC, 08:00 is 00:00 UTC
    moments = [utc(6, 10, 11, 59), utc(6, 10, 12), utc(6, 10, 23, 59), utc(6, 11)]
    assert [is_open(night, now) for now in moments] == [False, True, True, False]
    assert next_opening(night, utc(6, 10, 11, 59)) == utc(6, 10, 12)
    assert closes_at(night, utc(6, 10, 12)) == utc(6, 11)
    assert closes_at(night, utc(6, 11)) is None


def test_hours_within_one_day_close_on_that_day():
    office = window(opens=time(9), closes=time(17, 30))  # summer in Berlin is two hours ahead of UTC
    assert opening_around(office, utc(7, 1, 12)) == (utc(7, 1, 7), utc(7, 1, 15, 30))
    assert not is_open(office, utc(7, 1, 15, 30))


def test_a_night_belongs_to_the_weekday_on_which_it_opens():
    friday = window(weekdays=FRIDAY)  # 2026-06-12 is a Friday
    assert not is_open(friday, utc(6, 12, 5))  # Friday 07:00: the end of Thursday's night
    assert opening_around(friday, utc(6, 13, 5)) == (utc(6, 12, 18), utc(6, 13, 6))  # Saturday 07:00
    assert not is_open(friday, utc(6, 13, 18))  # Saturday 20:00


def test_a_weekly_window_that_has_just_opened_opens_next_in_a_week():
    friday = window(weekdays=FRIDAY)
    assert next_opening(friday, utc(6, 12, 18)) == utc(6, 19, 18)
    assert next_opening(friday, utc(6, 12, 17, 59)) == utc(6, 12, 18)


def test_the_day_is_that_of_the_windows_zone_and_not_that_of_utc():
    monday = window("Pacific/Auckland", opens=time(1), closes=time(5), weekdays="0")  # 12 hours ahead in June
    assert opening_around(monday, utc(6, 14, 14)) == (utc(6, 14, 13), utc(6, 14, 17))  # Sunday in UTC
    tuesday = window("Pacific/Honolulu", opens=time(22), closes=time(23), weekdays="1")  # 10 hours behind
    assert opening_around(tuesday, utc(6, 17, 8)) == (utc(6, 17, 8), utc(6, 17, 9))  # Wednesday in UTC


def test_opening_and_closing_at_the_same_time_is_a_whole_day():
    sunday = window(SHANGHAI, opens=time(6), closes=time(6), weekdays="6")  # 2026-06-14 is a Sunday
    assert opening_around(sunday, utc(6, 14, 10)) == (utc(6, 13, 22), utc(6, 14, 22))


def test_days_that_follow_one_another_close_at_the_last():
    weekend = window(SHANGHAI, opens=time(0), closes=time(0), weekdays="56")  # Saturday, 00:00 there is 16:00 UTC
    assert closes_at(weekend, utc(6, 12, 20)) == utc(6, 14, 16)
    assert closes_at(weekend, utc(6, 14, 15, 59)) == utc(6, 14, 16)
    six_days = window(SHANGHAI, opens=time(0), closes=time(0), weekdays="012345")
    assert closes_at(six_days, utc(6, 14, 16)) == utc(6, 20, 16)


def test_nights_with_days_between_them_do_not_join():
    assert closes_at(window(SHANGHAI), utc(6, 10, 13)) == utc(6, 11)


def test_a_window_of_every_whole_day_never_closes():
    always = window(opens=time(6), closes=time(6))
    assert is_open(always, utc(6, 10, 4))
    assert closes_at(always, utc(6, 10, 4)) is None


def test_a_window_without_weekdays_never_opens():
    never = window(weekdays="")
    assert (is_open(never, utc(6, 10, 20)), next_opening(never, utc(6, 10)), closes_at(never, utc(6, 10))) == (
        False,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("zone", "inside", "opening", "hours"),
    [
        (BERLIN, utc(3, 29, 1), (utc(3, 28, 19), utc(3, 29, 6)), 11),  # CET +1 to CEST +2 at 01:00 UTC
        (BERLIN, utc(10, 25, 1), (utc(10, 24, 18), utc(10, 25, 7)), 13),
        (NEW_YORK, utc(3, 8, 7), (utc(3, 8, 1), utc(3, 8, 12)), 11),  # EST -5 to EDT -4 at 07:00 UTC
        (NEW_YORK, utc(11, 1, 6), (utc(11, 1, 0), utc(11, 1, 13)), 13),
        (SHANGHAI, utc(3, 28, 18), (utc(3, 28, 12), utc(3, 29, 0)), 12),  # has no summer time
    ],
)
def test_in_the_night_of_the_change_both_ends_stay_at_their_wall_clock_times(zone, inside, opening, hours):
    assert opening_around(window(zone), inside) == opening
    assert opening[1] - opening[0] == timedelta(hours=hours)


@pytest.mark.parametrize(
    ("zone", "day", "start"),
    [(BERLIN, utc(3, 29), utc(3, 29, 1, 30)), (NEW_YORK, utc(3, 8), utc(3, 8, 7, 30))],
)
def test_a_time_that_the_spring_leaves_out_is_an_hour_later(zone, day, start):
    """There is no 02:30 that night: it opens at 03:30, and what would close then closes at 03:30."""
    assert next_opening(window(zone, opens=time(2, 30)), day) == start
    assert opening_around(window(zone, closes=time(2, 30)), start - timedelta(minutes=1))[1] == start


@pytest.mark.parametrize(
    ("zone", "first", "second"),
    [
        (BERLIN, utc(10, 25, 0, 30), utc(10, 25, 1, 30)),
        (NEW_YORK, utc(11, 1, 5, 30), utc(11, 1, 6, 30)),
    ],
)
def test_of_a_time_that_the_autumn_repeats_the_first_opens_and_the_second_closes(zone, first, second):
    repeated = time(2, 30) if zone == BERLIN else time(1, 30)
    assert next_opening(window(zone, opens=repeated), first - timedelta(hours=1)) == first
    assert opening_around(window(zone, closes=repeated), first)[1] == second


def test_an_opening_that_the_spring_leaves_nothing_of_does_not_count():
    gone = window(opens=time(2, 15), closes=time(3))  # 03:15 to 03:00 on that day
    assert next_opening(gone, utc(3, 28, 12)) == utc(3, 30, 0, 15)


def test_a_whole_day_that_closes_at_a_midnight_that_does_not_exist_leaves_no_hole():
    always = window("America/Santiago", opens=time(0), closes=time(0))  # on 2026-09-06, 00:00 -04 becomes 01:00 -03
    assert all(is_open(always, utc(9, 6, 2) + n * timedelta(minutes=15)) for n in range(16))


@pytest.mark.parametrize("zone", [BERLIN, NEW_YORK, SHANGHAI])
def test_in_every_hour_of_a_year_the_wall_clock_decides(zone):
    night, local = window(zone, weekdays="024"), ZoneInfo(zone)
    for hour in range(0, 365 * 24, 3):
        now = utc(1, 1) + timedelta(hours=hour, minutes=30)
        wall = now.astimezone(local)
        opened_on = wall.date() - timedelta(days=wall.hour < 8)
        inside = (wall.hour >= 20 or wall.hour < 8) and opened_on.weekday() in (0, 2, 4)
        assert is_open(night, now) == inside, wall
