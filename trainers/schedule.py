"""Which rows each optimizer step sees. A pure function of seed and step, so that resuming reads nothing. No torch."""

import random
from dataclasses import asdict, dataclass
from functools import lru_cache
from math import ceil
from typing import Self

from trainers.configs import TrainConfig


@dataclass(frozen=True)
class Schedule:
    """The steps of one run, counted in optimizer steps from 1; an epoch's last step takes the rows that are left."""

    rows: int
    rows_per_batch: int
    updates_per_batch: int
    epochs: int
    seed: int
    max_steps: int | None

    @classmethod
    def of(cls, config: TrainConfig, *, rows: int, updates_per_batch: int = 1) -> Self:
        """Return the schedule of ``config`` over ``rows`` rows, each batch serving ``updates_per_batch`` steps."""
        return cls(
            rows,
            config.batch_size * config.accumulation_steps,
            updates_per_batch,
            config.epochs,
            config.seed,
            config.max_steps,
        )

    @property
    def steps_per_epoch(self) -> int:
        return ceil(self.rows / self.rows_per_batch) * self.updates_per_batch

    @property
    def total_steps(self) -> int:
        return min(self.epochs * self.steps_per_epoch, self.max_steps or self.epochs * self.steps_per_epoch)

    def epoch_of(self, step: int) -> int:
        """Return the epoch, from 1, that step ``step`` belongs to."""
        return max(step - 1, 0) // self.steps_per_epoch + 1

    def step_in_epoch(self, step: int) -> int:
        """Return the number of ``step`` within its epoch, from 1."""
        return max(step - 1, 0) % self.steps_per_epoch + 1

    def rows_of(self, step: int) -> list[int]:
        """Return the indices of the rows that step ``step`` trains on."""
        order = _order(self.rows, self.seed, self.epoch_of(step))
        first = (self.step_in_epoch(step) - 1) // self.updates_per_batch * self.rows_per_batch
        return list(order[first : first + self.rows_per_batch])

    def identity(self) -> dict[str, int]:
        """Return what must be unchanged for a checkpoint's step to mean the same rows."""
        values = asdict(self)
        return {name: values[name] for name in ("rows", "rows_per_batch", "updates_per_batch", "seed")}


@lru_cache(maxsize=1)
def _order(rows: int, seed: int, epoch: int) -> list[int]:
    order = list(range(rows))
    random.Random(f"{seed}/{epoch}").shuffle(order)
    return order
