"""What the rules of the queue give each of five people in fourteen nights on four devices."""

import functools
import itertools

import pytest

from tests.benchmarks.fairness import ALIKE, DEVICES, NIGHTS, SMALL, asked_until, given, nights, spread, wishes

pytestmark = pytest.mark.parametrize("seed", [0, 1, 2])
played = functools.cache(lambda seed: nights(wishes(seed)))


def test_people_who_ask_alike_get_alike_however_they_hand_their_jobs_in(seed):
    assert max(spread(played(seed), morning) for morning in range(2, NIGHTS + 1)) <= 0.2


def test_without_what_each_had_the_early_ones_would_get_more(seed):
    assert spread(nights(wishes(seed)[:150], fair=False), 1) > 0.2


def test_no_job_waits_for_more_than_two_nights(seed):
    asked, ran = wishes(seed), played(seed)
    assert {each.wish for each in ran} == set(asked)
    assert max(each.nights_waited for each in ran) <= 2
    assert max(each.nights_waited for each in ran) >= 1, "there was no contention"
    assert sum(wish.count == 2 for wish in asked) > 50


def test_who_asks_for_a_third_gets_all_of_it_every_night(seed):
    asked, eve = wishes(seed), SMALL["eve"]
    for morning in range(1, NIGHTS + 1):
        assert given(played(seed), morning)[eve] == pytest.approx(asked_until(asked, eve, morning), abs=0.01)
        assert all(given(played(seed), morning)[owner] > 0 for owner in ALIKE.values())


def test_no_device_runs_two_jobs_at_once(seed):
    for device in range(DEVICES):
        runs = sorted((each.start, each.end) for each in played(seed) if device in each.devices)
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(runs))
