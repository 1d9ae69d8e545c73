"""Which job each device takes next."""

from datetime import UTC, datetime, timedelta

from jobs.services.next_in_line import next_in_line
from jobs.services.placement import Ask, Slot, State, plan

NOW = datetime(2026, 12, 1, 20, 0, tzinfo=UTC)


def ask(job, **wishes):
    return Ask(**{"job": job, "owner": 1, "queued_at": NOW} | wishes)


def slot(device, *, host="a", kind="gpu", minutes=None, closed=""):
    """Return a device that is busy for so many minutes, if any."""
    free_at = None if minutes is None else NOW + timedelta(minutes=minutes)
    return Slot(device=device, host=host, kind=kind, busy=minutes is not None, free_at=free_at, closed=closed)


def coming(asks, slots):
    state = State(now=NOW, asks=asks, slots=slots)
    return next_in_line(state, plan(state))


def test_a_free_device_gets_the_first_job_and_the_next_goes_where_it_is_free_soonest():
    assert coming([ask(1), ask(2), ask(3)], [slot(10, minutes=90), slot(11, minutes=30), slot(12)]) == {
        12: 1,
        11: 2,
        10: 3,
    }


def test_a_job_waits_for_a_device_that_suits_it():
    assert coming([ask(1, request="gpu"), ask(2)], [slot(10, minutes=90), slot(11, kind="cpu", minutes=30)]) == {
        10: 1,
        11: 2,
    }


def test_a_job_of_two_devices_comes_next_on_both():
    slots = [slot(10, minutes=10), slot(11, host="b", minutes=20), slot(12, host="b", minutes=30)]
    assert coming([ask(1, count=2), ask(2)], slots) == {11: 1, 12: 1, 10: 2}


def test_a_drained_device_has_nothing_next():
    assert coming([ask(1), ask(2)], [slot(10, closed="drained"), slot(11, minutes=5)]) == {11: 1}


def test_of_devices_with_an_unknown_end_those_with_a_known_one_come_first():
    unknown = Slot(device=9, host="a", kind="gpu", busy=True)
    assert coming([ask(1)], [unknown, slot(10, minutes=600)]) == {10: 1}
