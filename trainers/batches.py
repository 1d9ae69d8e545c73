"""Read the rows of each optimizer step, in the schedule's order, from any step on."""

import os
import signal
from collections.abc import Iterator, Sequence
from typing import Generic, Protocol, TypeVar

import torch
from torch.utils.data import DataLoader, Dataset

from dataset.errors import DataError
from trainers.schedule import Schedule

Row = TypeVar("Row")
RowOut = TypeVar("RowOut", covariant=True)
FEW_ROWS = 100_000  # below, reader processes cost more than they save


class Rows(Protocol[RowOut]):
    """Rows by index, as the readers in ``dataset`` give them."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> RowOut: ...


def read_batches(rows: Rows[Row], schedule: Schedule, *, after_step: int, num_workers: int) -> Iterator[list[Row]]:
    """Yield the rows of every step after ``after_step``; those before it are not read.

    Raises:
        DataError: a row cannot be used, also when a reader process found it.
    """
    workers = min(num_workers, os.cpu_count() or 1) if len(rows) >= FEW_ROWS else 0
    steps = range(after_step + 1, schedule.total_steps + 1)
    loader = DataLoader(
        _Readable(rows),
        batch_sampler=(schedule.rows_of(step) for step in steps),
        collate_fn=list,
        num_workers=workers,
        worker_init_fn=_ignore_stop_signals,
        generator=torch.Generator(),
    )  # its own: the run's draws stay as they are
    for batch in loader:
        for row in batch:
            if isinstance(row, DataError):
                raise row
        yield batch


def micro_batches(rows: Sequence[Row], size: int) -> list[Sequence[Row]]:
    """Return ``rows`` in pieces of ``size``; the last may be smaller."""
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _ignore_stop_signals(worker: int) -> None:
    """Leave a stop request, which reaches the whole process group, to the trainer: it still reads its step's rows."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)


class _Readable(Dataset, Generic[Row]):
    """Rows whose errors are values, since a reader process cannot raise them with their row number."""

    def __init__(self, rows: Rows[Row]) -> None:
        self.rows = rows

    def __getitem__(self, index: int) -> Row | DataError:
        try:
            return self.rows[index]
        except DataError as error:
            return error
