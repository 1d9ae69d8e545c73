import multiprocessing
import os
import signal

import pytest
import torch

from dataset.errors import DataError
from trainers import batches
from trainers.batches import micro_batches, read_batches
from trainers.configs import SFTConfig
from trainers.ranks import ALONE
from trainers.schedule import Schedule

PLAN = Schedule.of(SFTConfig(batch_size=4, epochs=2), ranks=ALONE, rows=10)


class Numbers:
    """Rows that are their own index; one of them may be bad."""

    def __init__(self, bad=None):
        self.bad, self.read = bad, []

    def __len__(self):
        return 10

    def __getitem__(self, index):
        self.read.append(index)
        if index == self.bad:
            raise DataError("numbers.jsonl", index + 1, "is bad")
        return index


def test_batches_follow_the_schedule():
    assert list(read_batches(Numbers(), PLAN, after_step=0, num_workers=8)) == [PLAN.rows_of(s) for s in range(1, 7)]


def test_rows_before_the_resumed_step_are_not_read():
    rows = Numbers()
    assert list(read_batches(rows, PLAN, after_step=5, num_workers=8)) == [PLAN.rows_of(6)]
    assert rows.read == PLAN.rows_of(6)


@pytest.mark.parametrize("few_rows", [100, 0])
def test_reader_processes_give_the_same_rows_and_the_same_errors(monkeypatch, few_rows):
    monkeypatch.setattr(batches, "FEW_ROWS", few_rows)
    assert list(read_batches(Numbers(), PLAN, after_step=4, num_workers=2)) == [PLAN.rows_of(5), PLAN.rows_of(6)]
    with pytest.raises(DataError, match=r"numbers\.jsonl, row 4: is bad"):
        list(read_batches(Numbers(bad=3), PLAN, after_step=0, num_workers=2))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_signal_to_the_whole_group_leaves_the_readers_at_work(monkeypatch, number):
    monkeypatch.setattr(batches, "FEW_ROWS", 0)
    plan = Schedule.of(SFTConfig(batch_size=4, epochs=20), ranks=ALONE, rows=10)  # far more than is read ahead
    reading = read_batches(Numbers(), plan, after_step=0, num_workers=2)
    assert [next(reading), next(reading)] == [plan.rows_of(1), plan.rows_of(2)], "each reader has begun"
    readers = multiprocessing.active_children()
    assert len(readers) >= 1
    for reader in readers:
        os.kill(reader.pid, number)
    assert list(reading) == [plan.rows_of(step) for step in range(3, 61)]


def test_reading_draws_no_random_numbers_of_the_run():
    torch.manual_seed(1)
    list(read_batches(Numbers(), PLAN, after_step=0, num_workers=0))
    after = torch.rand(1)
    torch.manual_seed(1)
    assert torch.equal(torch.rand(1), after)


def test_micro_batches_leave_no_row_out():
    assert micro_batches([1, 2, 3, 4, 5], 2) == [[1, 2], [3, 4], [5]]
