"""Fourteen nights of five people on four devices, as the planner has them: ``python -m tests.benchmarks.fairness``.

Weeknights ask for 114 % of what the devices have, weekends for half of that. Four people ask alike: two put ten jobs in
at six in the evening, two hand in theirs over the day. The fifth asks for a third as much. One job in six is of two
devices, and what a job is expected to take is off by up to a quarter.
"""

import os
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

NIGHTS, DEVICES = 14, 4
OPENS, CLOSES = 20, 8  # o'clock
MIDNIGHT = datetime(2026, 11, 30, tzinfo=UTC)  # of a Monday
BURST, TRICKLE, SMALL = {"ada": 1, "bob": 2}, {"cleo": 3, "dan": 4}, {"eve": 5}
ALIKE, PEOPLE = BURST | TRICKLE, BURST | TRICKLE | SMALL
HOURS = (0.5, 0.75, 1.0, 1.5, 2.0)


@dataclass(frozen=True)
class Wish:
    """One job, as it is asked for; times are hours since the first midnight."""

    job: int
    owner: int
    at: float
    count: int
    hours: float
    expected: float

    @property
    def device_hours(self) -> float:
        return self.count * self.hours


@dataclass(frozen=True)
class Ran:
    """One job that started."""

    wish: Wish
    start: float
    devices: tuple[int, ...]

    @property
    def end(self) -> float:
        return self.start + self.wish.hours

    @property
    def nights_waited(self) -> int:
        """How many mornings came before it started."""
        return int((self.start - CLOSES) // 24 - (self.wish.at - CLOSES) // 24)

    def used_until(self, hour: float) -> float:
        return self.wish.count * max(0.0, min(self.end, hour) - self.start)


def wishes(seed: int) -> list[Wish]:
    """Return what all ask for, in the order in which they ask."""
    draw = random.Random(seed)
    asked = [each for night in range(NIGHTS) for owner in PEOPLE.values() for each in _evening(draw, night, owner)]
    asked.sort(key=lambda each: each[1])
    return [Wish(number, *each) for number, each in enumerate(asked)]


def _evening(draw: random.Random, night: int, owner: int) -> Iterator[tuple[int, float, int, float, float]]:
    """Yield a person's jobs of one day: 12.6 device hours, 4.2 for the fifth; half on a weekend."""
    left = (12.6 if owner in ALIKE.values() else 4.2) / (2 if night % 7 > 4 else 1)
    while left > 0.1:
        count = 2 if draw.random() < 1 / 6 else 1
        hours = min(draw.choice(HOURS), left / count)
        at = 24 * night + (18.0 if owner in BURST.values() else draw.uniform(9, 24))
        yield owner, at, count, hours, hours * draw.uniform(0.75, 1.25)
        left -= count * hours


def nights(asked: Iterable[Wish], *, fair: bool = True) -> list[Ran]:
    """Return when each job runs; ``fair=False`` forgets who had what: almost first come, first served."""
    waiting, ran, running = list(asked), [], []
    moments = {24.0 * night + OPENS for night in range(NIGHTS + 9)} | {wish.at for wish in waiting}
    while moments and waiting:
        now = min(moments)
        moments.remove(now)
        running = [each for each in running if each.end > now]
        if now % 24 >= OPENS or now % 24 < CLOSES:
            started = _started(now, waiting, running, ran if fair else [])
            running, ran = running + started, ran + started
            gone = {each.wish.job for each in started}
            waiting = [wish for wish in waiting if wish.job not in gone]
            moments |= {each.end for each in started}
    return ran


def _started(now: float, waiting: list[Wish], running: list[Ran], past: list[Ran]) -> list[Ran]:
    from jobs.services.placement import Ask, Slot, State, plan

    asks = {
        wish.job: Ask(
            job=wish.job, owner=wish.owner, queued_at=_moment(wish.at), count=wish.count, seconds=3600 * wish.expected
        )
        for wish in waiting
        if wish.at <= now
    }
    ends = {device: max(each.start + each.wish.expected, now) for each in running for device in each.devices}
    slots = [
        Slot(device=n, host="box", kind="gpu", busy=n in ends, free_at=_moment(ends[n]) if n in ends else None)
        for n in range(DEVICES)
    ]
    state = State(now=_moment(now), asks=asks.values(), slots=slots, used=_used(now, past))
    by_job = {wish.job: wish for wish in waiting}
    return [Ran(by_job[job], now, devices) for job, devices in plan(state).starts.items()]


def _used(now: float, past: list[Ran]) -> dict[int, float]:
    """Return the decayed device seconds of each person, what runs counted to its expected end, as workers see it."""
    from jobs.services.fair_share import decayed

    used: dict[int, float] = defaultdict(float)
    for each in past:
        ended = min(each.end, now)
        used[each.wish.owner] += each.wish.count * decayed(3600 * (now - each.start), 3600 * (now - ended))
        if each.end > now:
            used[each.wish.owner] += each.wish.count * 3600 * max(each.start + each.wish.expected - now, 0)
    return used


def _moment(hour: float) -> datetime:
    return MIDNIGHT + timedelta(hours=hour)


def given(ran: Iterable[Ran], morning: int) -> Counter[int]:
    """Return the device hours that each person had until eight o'clock after so many nights."""
    hours: Counter[int] = Counter()
    for each in ran:
        hours[each.wish.owner] += each.used_until(24 * morning + CLOSES)
    return hours


def spread(ran: list[Ran], morning: int) -> float:
    """Return how much less than the most one of those who ask alike had, as a share."""
    hours = [given(ran, morning)[owner] for owner in ALIKE.values()]
    return 1 - min(hours) / max(hours)


def asked_until(asked: Iterable[Wish], owner: int, morning: int) -> float:
    return sum(wish.device_hours for wish in asked if wish.owner == owner and wish.at < 24 * morning + CLOSES)


def main(seed: int = 0) -> None:
    """Print what each person asked for and had after each night, and how far those who ask alike are apart."""
    asked = wishes(seed)
    fair, first_come = nights(asked), nights(asked, fair=False)
    print("device hours had of those asked for, after each night")
    print("night", *(f"{name:>14}" for name in PEOPLE), "  apart   first come")
    for morning in range(1, NIGHTS + 1):
        had = given(fair, morning)
        row = [f"{had[owner]:6.1f} of {asked_until(asked, owner, morning):5.1f}" for owner in PEOPLE.values()]
        print(f"{morning:5}", *row, f"{spread(fair, morning):7.0%} {spread(first_come, morning):12.0%}")
    longest = {name: max(each.nights_waited for each in fair if each.wish.owner == n) for name, n in PEOPLE.items()}
    print(f"{len(fair)} of {len(asked)} jobs ran; most nights waited:", longest)


if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    import django

    django.setup()
    main(*map(int, sys.argv[1:]))
