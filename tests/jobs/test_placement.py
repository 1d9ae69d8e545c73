"""Which job starts where, and why the others wait, on states that are written down."""

import random
import time
from datetime import UTC, datetime, timedelta

import pytest

from jobs.services.placement import Ask, Slot, Standing, State, Why, plan

NOW = datetime(2026, 12, 1, 20, 0, tzinfo=UTC)
HOUR = 3600.0


def ask(job, **wishes):
    return Ask(**{"job": job, "owner": 1, "queued_at": NOW} | wishes)


def gang(job, count=2, *, waited=601, **wishes):
    """Return a job of several devices that has waited so many seconds; patience is 600."""
    return ask(job, count=count, queued_at=NOW - timedelta(seconds=waited), **wishes)


def slot(device, host="a", kind="gpu", *, minutes=None, **more):
    """Return a device that is busy for so many minutes, if any."""
    free_at = None if minutes is None else NOW + timedelta(minutes=minutes)
    return Slot(
        **{"device": device, "host": host, "kind": kind, "busy": minutes is not None, "free_at": free_at} | more
    )


def made(asks, slots, *, prefer=None, **state):
    return plan(State(now=NOW, asks=asks, slots=slots, **state), prefer=prefer)


def starts(asks, slots, **state):
    return made(asks, slots, **state).starts


def order(asks, **state):
    """Return the jobs in the order in which they would start on one device that is busy."""
    return list(made(asks, [slot(1, minutes=5)], **state).positions)


def test_what_an_operator_put_first_goes_before_priority_and_that_before_age():
    asks = [ask(1), ask(2, priority=-1), ask(3, priority=1), ask(4, priority=-1, place=1), ask(5, place=2)]
    assert order(asks) == [5, 4, 3, 1, 2]


def test_the_person_who_used_least_goes_before_the_one_who_asked_first():
    assert order([ask(1, owner=1), ask(2, owner=2)], used={1: 10.0, 2: 9.0}) == [2, 1]


def test_a_high_priority_goes_before_the_use_of_devices():
    assert order([ask(1, owner=1, priority=1), ask(2, owner=2)], used={1: 9e9}) == [1, 2]


def test_jobs_of_two_people_take_turns_because_each_is_charged_in_advance():
    asks = [ask(n, owner=1, seconds=HOUR) for n in (1, 2, 3)] + [ask(n, owner=2, seconds=2 * HOUR) for n in (4, 5)]
    # 1 and 4 at 0 each; then 1 h against 2 h: 2; then 2 h each, the older: 3; then 3 h against 2 h: 5.
    assert order(asks) == [1, 4, 2, 3, 5]


def test_a_job_of_two_devices_is_charged_for_both():
    assert order([ask(1, owner=1, seconds=HOUR), ask(2, owner=2, seconds=HOUR), ask(3, owner=1)]) == [1, 2, 3]
    gangs = [ask(1, owner=1, seconds=HOUR, count=2), ask(2, owner=2, seconds=HOUR), ask(3, owner=1), ask(4, owner=2)]
    assert list(made(gangs, [slot(1, minutes=5), slot(2, minutes=5)]).positions) == [1, 2, 4, 3]


def test_a_job_of_unknown_length_is_charged_an_hour():
    # 1 hour against half an hour: the second job of owner 2 goes before the second of owner 1.
    asks = [ask(1, owner=1), ask(2, owner=2, seconds=HOUR / 2), ask(3, owner=1), ask(4, owner=2)]
    assert order(asks) == [1, 2, 4, 3]


def test_a_person_at_the_limit_waits_and_others_pass():
    done = made([ask(1, owner=1), ask(2, owner=2)], [slot(1)], running={1: 2}, limits={1: 2})
    assert (done.starts, done.standings) == ({2: (1,)}, {1: Standing(Why.LIMIT, "2")})
    assert done.positions == {2: 1}


def test_a_limit_counts_what_starts_in_the_same_plan():
    assert starts([ask(1), ask(2), ask(3)], [slot(1), slot(2), slot(3)], limits={1: 2}) == {1: (1,), 2: (2,)}


@pytest.mark.parametrize(
    ("wish", "device"),
    [({"request": "named", "device": 3}, 3), ({"request": "label", "label": "80g"}, 2), ({"request": "cpu"}, 4)],
)
def test_a_job_starts_on_the_device_it_asks_for(wish, device):
    slots = [slot(1), slot(2, labels=frozenset(["80g"])), slot(3), slot(4, kind="cpu")]
    assert starts([ask(7, **wish)], slots) == {7: (device,)}


def test_a_job_waits_for_the_device_it_asks_for_and_others_pass():
    done = made([ask(1, request="named", device=1), ask(2)], [slot(1, minutes=9), slot(2)])
    assert (done.starts, done.standings) == ({2: (2,)}, {1: Standing(Why.TURN)})


def test_several_devices_are_of_one_host_and_one_kind():
    scattered = [slot(1, "a"), slot(2, "b"), slot(3, "a", "cpu")]
    assert made([ask(1, count=2)], scattered).standings == {1: Standing(Why.NO_DEVICE)}
    assert starts([ask(1, count=2)], [*scattered, slot(4, "b")]) == {1: (2, 4)}


def test_a_small_job_leaves_the_larger_host_free():
    slots = [slot(1, "a"), slot(2, "a"), slot(3, "a"), slot(4, "b"), slot(5, "b")]
    assert starts([ask(1), ask(2, count=3)], slots) == {1: (4,), 2: (1, 2, 3)}


def test_a_worker_that_asks_is_given_its_own_device():
    assert starts([ask(1)], [slot(1), slot(2), slot(3, "b")], prefer=2) == {1: (2,)}
    assert starts([ask(1, count=2)], [slot(1), slot(2), slot(3)], prefer=3) == {1: (3, 1)}


def test_the_host_of_the_checkpoint_is_waited_for_and_then_no_longer():
    home = {"homes": frozenset(["a"]), "prefers_homes_until": NOW + timedelta(seconds=1)}
    busy, free = slot(1, "a", minutes=5), slot(2, "b")
    assert made([ask(1, **home)], [busy, free]).standings == {1: Standing(Why.TURN)}
    assert made([ask(1, **home)], [free]).standings == {1: Standing(Why.HOME, "a")}
    home["prefers_homes_until"] = NOW
    assert starts([ask(1, **home)], [busy, free]) == {1: (2,)}
    assert starts([ask(1, **home)], [slot(3, "c"), slot(1, "a"), free]) == {1: (1,)}


def test_a_job_starts_only_where_the_disk_has_room():
    assert starts([ask(1, disk=10)], [slot(1, "a", room=9), slot(2, "b", room=10)]) == {1: (2,)}
    assert made([ask(1, disk=11)], [slot(1, "a", room=9), slot(2, "b", room=10)]).standings == {
        1: Standing(Why.DISK, "b")
    }


def test_two_jobs_that_start_together_do_not_count_on_the_same_room():
    done = made([ask(1, disk=6), ask(2, disk=6), ask(3, disk=4)], [slot(n, room=10) for n in (1, 2, 3)])
    assert (done.starts, done.standings) == ({1: (1,), 3: (2,)}, {2: Standing(Why.TURN)})


def test_nothing_starts_on_a_closed_device():
    done = made([ask(1), ask(2, request="named", device=1)], [slot(1, closed="drained: fan"), slot(2)])
    assert (done.starts, done.standings) == ({1: (2,)}, {2: Standing(Why.CLOSED, "drained: fan")})


def test_small_jobs_pass_one_of_several_devices_until_its_patience_ends():
    slots = [slot(1), slot(2, minutes=60)]
    assert starts([gang(1, waited=599), ask(2)], slots) == {2: (1,)}
    done = made([gang(1, waited=600), ask(2)], slots)
    assert (done.starts, done.kept_free) == ({}, {1: 1, 2: 1})


@pytest.mark.parametrize(("seconds", "passes"), [(HOUR, True), (HOUR + 1, False), (None, False)])
def test_after_that_only_what_surely_ends_before_may_pass(seconds, passes):
    slots = [slot(1), slot(2, minutes=60)]
    assert starts([gang(1), ask(2, seconds=seconds)], slots) == ({2: (1,)} if passes else {})


def test_while_the_end_of_what_runs_is_unknown_nothing_passes():
    assert starts([gang(1), ask(2, seconds=1)], [slot(1), slot(2, busy=True)]) == {}


def test_it_keeps_no_more_devices_than_it_needs():
    done = made([gang(1), ask(2), ask(3)], [slot(1, "b"), slot(2), slot(3, minutes=5), slot(4, minutes=90)])
    assert (done.starts, done.kept_free) == ({2: (1,)}, {2: 1, 3: 1})


def test_devices_are_kept_on_the_host_that_is_free_soonest():
    slots = [slot(1, "a"), slot(2, "a", minutes=60), slot(3, "b", minutes=30), slot(4, "b", minutes=40)]
    done = made([gang(1), ask(2)], slots)
    assert (done.starts, done.kept_free) == ({2: (1,)}, {3: 1, 4: 1})


def test_what_started_in_the_same_plan_counts_as_busy_until_its_end():
    slots = [slot(1, "a"), slot(2, "a"), slot(3, "b", minutes=30), slot(4, "b", minutes=40)]
    asks = [ask(1, priority=1, seconds=HOUR), gang(2), ask(3, seconds=HOUR)]
    # Host a is free in an hour, host b in 40 minutes: b is kept, and the small job may have a.
    done = made(asks, slots)
    assert (done.starts, done.kept_free) == ({1: (1,), 3: (2,)}, {3: 2, 4: 2})


def test_of_two_jobs_of_several_devices_the_first_gets_them_and_neither_holds_a_part():
    done = made([gang(1), gang(2)], [slot(1), slot(2, minutes=5), slot(3, minutes=9)])
    assert (done.starts, done.kept_free) == ({}, {1: 1, 2: 1})
    assert starts([gang(1), gang(2)], [slot(1), slot(2), slot(3, minutes=9)]) == {1: (1, 2)}
    assert starts([gang(2)], [slot(1, minutes=9), slot(2), slot(3)]) == {2: (2, 3)}


def test_one_that_waits_for_its_checkpoints_host_keeps_no_other_host():
    home = {"homes": frozenset(["a"]), "prefers_homes_until": NOW + timedelta(minutes=5)}
    slots = [slot(1, "a", minutes=9), slot(2, "a", minutes=9), slot(3, "b"), slot(4, "b")]
    done = made([gang(1, **home), ask(2)], slots)
    assert (done.starts, done.kept_free) == ({2: (3,)}, {1: 1, 2: 1})


def test_one_larger_than_any_host_keeps_nothing():
    done = made([gang(1, 3), ask(2)], [slot(1), slot(2), slot(3, "b")])
    assert (done.standings, done.kept_free, set(done.starts)) == ({1: Standing(Why.NO_DEVICE)}, {}, {2})


def test_ten_thousand_jobs_of_fifty_people_are_planned_in_half_a_second():
    asks = [ask(n, owner=n % 50, seconds=n, count=1 + n % 2, disk=5) for n in range(10_000)]
    slots = [slot(n, f"host{n // 8}", minutes=n % 7 or None, room=100) for n in range(64)]
    begun = time.perf_counter()
    assert len(made(asks, slots).positions) == 10_000
    taken = time.perf_counter() - begun
    print(f"10,000 jobs on 64 devices: {taken:.2f} s")
    assert taken < 0.5


def random_state(seed):
    draw = random.Random(seed)
    rooms = [draw.choice([None, 10, 100]) for _ in range(4)]
    slots = [
        slot(
            n, f"host{n // 3}", draw.choice(["gpu", "gpu", "cpu"]), minutes=draw.choice([None, None, 5, 90]),
            closed=draw.choice(["", "", "", "drained"]), labels=frozenset(draw.sample(["80g", "quick"], 1)),
            room=rooms[n // 3],
        )
        for n in range(draw.randint(1, 12))
    ]  # fmt: skip
    asks = [
        gang(
            n, draw.choice([1, 1, 1, 2, 3]), owner=draw.randint(1, 4), waited=draw.choice([0, 1200]),
            priority=draw.randint(-1, 1), seconds=draw.choice([None, 60.0, 9000.0]), disk=draw.choice([0, 50]),
            **draw.choice([{}, {"request": "gpu"}, {"request": "label", "label": "80g"}]),
        )
        for n in range(100, 100 + draw.randint(1, 30))
    ]  # fmt: skip
    limits = {owner: draw.choice([None, 1, 2]) for owner in range(1, 5)}
    return State(now=NOW, asks=asks, slots=slots, limits=limits, running={1: draw.randint(0, 2)})


@pytest.mark.parametrize("seed", range(0, 500, 50))
def test_no_plan_breaks_a_rule(seed):
    for state in map(random_state, range(seed, seed + 50)):
        asks, slots = {a.job: a for a in state.asks}, {s.device: s for s in state.slots}
        done = plan(state)
        given = [device for devices in done.starts.values() for device in devices]
        assert len(given) == len(set(given))
        for job, devices in done.starts.items():
            on = [slots[device] for device in devices]
            wish = asks[job]
            assert len({(s.host, s.kind) for s in on}) == 1
            assert len(on) == wish.count
            assert not any(s.busy or s.closed for s in on)
            assert all(wish.request in ("any", s.kind) or "80g" in s.labels for s in on)
            assert all(s.room is None or s.room >= wish.disk for s in on)
        owners = [asks[job].owner for job in done.starts]
        for owner, limit in state.limits.items():
            had = state.running.get(owner, 0)
            assert limit is None or had + owners.count(owner) <= max(limit, had)
        assert done.starts.keys().isdisjoint(done.standings)
        assert done.starts.keys() | done.standings.keys() == asks.keys()
        assert plan(state, starts_only=True).starts == done.starts


@pytest.mark.parametrize("seed", range(0, 500, 50))
def test_a_device_stays_idle_only_for_a_reason(seed):
    for state in map(random_state, range(seed, seed + 50)):
        done = plan(state)
        given = {device for devices in done.starts.values() for device in devices}
        idle = [s for s in state.slots if not (s.busy or s.closed or s.device in given or s.device in done.kept_free)]
        for waits in (a for a in state.asks if done.standings.get(a.job) == Standing(Why.TURN) and a.count == 1):
            suitable = [s for s in idle if waits.request in ("any", s.kind) or waits.label in s.labels]
            assert not [s for s in suitable if s.room is None or not waits.disk]
