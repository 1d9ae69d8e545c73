"""The queue played forward, on states that are written down."""

from datetime import UTC, datetime, time, timedelta

from jobs.models import Window
from jobs.services.placement import Ask, Slot, State
from jobs.services.rehearsal import Rehearsal, Run, Waiting

NOW = datetime(2026, 12, 1, 18, 0, tzinfo=UTC)
NIGHT = Window(name="night", time_zone="UTC", opens=time(20), closes=time(8))


def minutes(number):
    return NOW + timedelta(minutes=number)


def waiting(job, length=10, *, count=1, owner=1, request="any", **kept):
    seconds = None if length is None else 60.0 * length
    ask = Ask(job=job, owner=owner, queued_at=NOW, seconds=seconds, count=count, request=request)
    return Waiting(ask=ask, **kept)


def busy(device, length, *, job=90, owner=1):
    """Return a device and the run on it, which takes so many minutes more."""
    ends = None if length is None else minutes(length)
    slot = Slot(device=device, host="a", kind="gpu", busy=True, free_at=ends)
    return slot, Run(job=job + device, owner=owner, devices=(device,), ends=ends)


def free(device, **more):
    return Slot(device=device, host="a", kind="gpu", **more)


def played(jobs, slots, runs=(), **state):
    """Return the minutes after which each job starts."""
    starts = Rehearsal(State(now=NOW, asks=[], slots=slots, **state), jobs, runs).play()
    return {job: (start - NOW).total_seconds() / 60 for job, start in starts.items()}


def test_each_job_starts_when_the_one_before_it_ends():
    slot, run = busy(1, 5)
    assert played([waiting(1), waiting(2, 20), waiting(3)], [slot], [run]) == {1: 5, 2: 15, 3: 35}


def test_two_devices_are_taken_as_they_come_free():
    (first, one), (second, two) = busy(1, 5), busy(2, 7)
    assert played([waiting(1), waiting(2), waiting(3)], [first, second], [one, two]) == {1: 5, 2: 7, 3: 15}


def test_behind_a_job_of_unknown_length_nothing_is_known():
    assert played([waiting(1, None), waiting(2)], [free(1)]) == {1: 0}
    unknown, run = busy(2, None)
    assert played([waiting(1), waiting(2)], [free(1), unknown], [run]) == {1: 0, 2: 10}


def test_a_device_that_is_drained_is_not_counted_on():
    assert played([waiting(1)], [free(1, closed="drained")]) == {}


def test_a_job_starts_when_its_window_opens_and_after_its_time():
    jobs = [waiting(1, window=NIGHT), waiting(2, not_before=minutes(30))]
    assert played(jobs, [free(1)]) == {1: 120, 2: 30}


def test_a_window_that_takes_its_devices_back_ends_a_run():
    night = Window(name="night", time_zone="UTC", opens=time(16), closes=time(19), at_end=Window.AtEnd.REQUEUE)
    child = waiting(3, parent=1)
    assert played([waiting(1, 600, window=night), waiting(2), child], [free(1)]) == {1: 0, 2: 60}


def test_a_child_starts_after_its_parents_end():
    slot, run = busy(1, 5)
    jobs = [waiting(1, 30, parent=run.job), waiting(2, parent=1), waiting(3, parent=77)]
    assert played(jobs, [slot, free(2)], [run]) == {1: 5, 2: 35}


def test_a_job_of_two_devices_starts_when_both_are_free():
    (first, one), (second, two) = busy(1, 20), busy(2, 30)
    assert played([waiting(1, count=2), waiting(2, 5)], [first, second], [one, two], patience=0) == {1: 30, 2: 20}


def test_a_limit_counts_what_still_runs():
    slot, run = busy(1, 20, owner=2)
    jobs = [waiting(1, 10, owner=2), waiting(2, 40)]
    assert played(jobs, [slot, free(2)], [run], running={2: 1}, limits={2: 1}) == {1: 20, 2: 0}


def test_the_person_who_used_less_goes_first_and_the_other_follows():
    slot, run = busy(1, 5)
    jobs = [waiting(1), waiting(2), waiting(3, owner=2), waiting(4, owner=2)]
    assert played(jobs, [slot], [run], used={1: 1.0}) == {3: 5, 1: 15, 4: 25, 2: 35}
