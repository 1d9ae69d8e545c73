import pytest

from trainers.configs import GRPOConfig, SFTConfig
from trainers.ranks import ALONE, Ranks
from trainers.schedule import Schedule


def schedule(rows, *, batch_size=1, accumulation_steps=2, updates_per_batch=1, **flags):
    config = SFTConfig(batch_size=batch_size, accumulation_steps=accumulation_steps, **flags)
    return Schedule.of(config, ranks=ALONE, rows=rows, updates_per_batch=updates_per_batch)


def test_five_micro_batches_of_two_make_three_steps_an_epoch():
    plan = schedule(5, epochs=2)
    assert (plan.steps_per_epoch, plan.total_steps) == (3, 6)
    assert [len(plan.rows_of(step)) for step in range(1, 7)] == [2, 2, 1, 2, 2, 1]


def test_an_epoch_sees_every_row_once_in_an_order_of_its_own():
    plan = schedule(10, batch_size=4, accumulation_steps=1, epochs=2)
    first = [row for step in (1, 2, 3) for row in plan.rows_of(step)]
    second = [row for step in (4, 5, 6) for row in plan.rows_of(step)]
    assert sorted(first) == sorted(second) == list(range(10))
    assert first != second != list(range(10))


def test_the_order_depends_on_the_seed_alone():
    assert schedule(50, seed=1).rows_of(7) == schedule(50, seed=1).rows_of(7)
    assert schedule(50, seed=1).rows_of(7) != schedule(50, seed=2).rows_of(7)


@pytest.mark.parametrize(("max_steps", "total"), [(None, 6), (4, 4), (100, 6)])
def test_max_steps_ends_a_run_early_and_never_prolongs_it(max_steps, total):
    assert schedule(5, epochs=2, max_steps=max_steps).total_steps == total


def test_epochs_are_counted_from_one():
    plan = schedule(5, epochs=2)
    assert [plan.epoch_of(step) for step in range(7)] == [1, 1, 1, 1, 2, 2, 2]
    assert [plan.step_in_epoch(step) for step in range(1, 7)] == [1, 2, 3, 1, 2, 3]


def test_two_updates_on_a_batch_see_the_same_rows():
    plan = Schedule.of(GRPOConfig(batch_size=2), ranks=ALONE, rows=6, updates_per_batch=2)
    assert plan.total_steps == 6
    assert plan.rows_of(1) == plan.rows_of(2) != plan.rows_of(3) == plan.rows_of(4)


def test_ranks_share_a_batch_without_a_gap_or_a_row_twice():
    shares = [
        Schedule.of(SFTConfig(batch_size=4), rows=20, ranks=Ranks(rank, 3)).share(list(range(7))) for rank in range(3)
    ]
    assert shares == [[0, 1, 2], [3, 4], [5, 6]]
