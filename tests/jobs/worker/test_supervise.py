"""Which of several reasons ends an attempt."""

from itertools import product
from threading import Event
from types import SimpleNamespace

import pytest

from jobs.worker.outcome import Asked, Wish
from jobs.worker.supervise import strongest_wish, watch


class Limit:
    def __init__(self, reached: bool) -> None:
        self.reached = reached

    def __str__(self) -> str:
        return "8 h"

    def is_reached(self) -> bool:
        return self.reached


def wish_of(*, cancel=False, limit=False, yields=False, drain=False):
    asked = Event()
    if cancel:
        asked.set()
    link = SimpleNamespace(cancel_asked=asked, yield_reason="the window night closed" if yields else "")
    return strongest_wish(link, Limit(limit), drain)


def test_nobody_wishes_anything():
    assert wish_of() is None


@pytest.mark.parametrize(("limit", "yields", "drain"), list(product((False, True), repeat=3)))
def test_cancel_wins_over_everything(limit, yields, drain):
    assert wish_of(cancel=True, limit=limit, yields=yields, drain=drain) == Wish(Asked.CANCEL)


@pytest.mark.parametrize(("yields", "drain"), list(product((False, True), repeat=2)))
def test_a_reached_limit_wins_over_going_back_to_the_queue(yields, drain):
    assert wish_of(limit=True, yields=yields, drain=drain) == Wish(Asked.TIME_LIMIT, "time limit of 8 h reached")


def test_of_two_ways_back_to_the_queue_the_one_that_lasts_is_told():
    assert wish_of(yields=True, drain=True) == Wish(Asked.YIELD, "the window night closed")
    assert wish_of(drain=True) == Wish(Asked.DRAIN, "the worker was stopped")


class Process:
    """A trainer that ends after so many looks; it counts what it is asked."""

    def __init__(self, looks: int) -> None:
        self.looks, self.stops, self.kills = looks, 0, 0

    def is_running(self) -> bool:
        self.looks -= 1
        return self.looks >= 0

    def beat(self) -> None:
        pass

    def stop(self, grace: float) -> None:
        self.stops += 1

    def kill(self) -> None:
        self.kills += 1


@pytest.mark.parametrize(
    "wishes",
    [
        [None, Wish(Asked.DRAIN), Wish(Asked.TIME_LIMIT), Wish(Asked.CANCEL)],
        [None, Wish(Asked.CANCEL), Wish(Asked.TIME_LIMIT), Wish(Asked.DRAIN)],
        [None, Wish(Asked.YIELD), Wish(Asked.CANCEL), None],
    ],
)
def test_whatever_came_first_the_strongest_wish_of_the_whole_time_counts(wishes):
    process, coming = Process(looks=4), iter(wishes)
    link = SimpleNamespace(may_train_on=lambda: True, fenced=Event())
    assert watch(process, link, lambda: next(coming)) == Wish(Asked.CANCEL)
    assert (process.stops, process.kills) == (3, 0)


def test_a_fenced_attempt_is_killed_whatever_is_wished():
    process, fenced = Process(looks=2), Event()
    fenced.set()
    watch(process, SimpleNamespace(may_train_on=lambda: True, fenced=fenced), lambda: Wish(Asked.DRAIN))
    assert (process.stops, process.kills) == (0, 2)
