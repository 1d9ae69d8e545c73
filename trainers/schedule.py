"""Which rows each optimizer step sees. A pure function of seed and step, so that resuming reads nothing. No torch."""

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Self, TypeVar

from trainers.configs import TrainConfig
from trainers.errors import ConfigurationError

if TYPE_CHECKING:
    from trainers.ranks import Ranks

Item = TypeVar("Item")


@dataclass(frozen=True)
class Schedule:
    """The steps of one run, counted in optimizer steps from 1; an epoch's last step takes the rows that are left.

    Several ranks share the rows of a step; rows that are left and fewer than the ranks wait for the next epoch's order.
    """

    rows: int
    rows_per_batch: int  # of all ranks together
    updates_per_batch: int
    epochs: int
    seed: int
    max_steps: int | None
    rank: int = 0
    world_size: int = 1

    @classmethod
    def of(cls, config: TrainConfig, *, rows: int, ranks: "Ranks", updates_per_batch: int = 1) -> Self:
        """Return the schedule of ``config`` over ``rows`` rows, each batch serving ``updates_per_batch`` steps.

        Raises:
            ConfigurationError: there are fewer rows than ranks.
        """
        if rows < ranks.world_size:
            raise ConfigurationError(f"--data_path: {rows} rows are too few for {ranks.world_size} processes")
        return cls(
            rows,
            config.batch_size * config.accumulation_steps * ranks.world_size,
            updates_per_batch,
            config.epochs,
            config.seed,
            config.max_steps,
            ranks.rank,
            ranks.world_size,
        )

    @property
    def steps_per_epoch(self) -> int:
        full, left = divmod(self.rows, self.rows_per_batch)
        return (full + (left >= self.world_size)) * self.updates_per_batch

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
        """Return the indices of the rows that this rank trains on in step ``step``."""
        order = _order(self.rows, self.seed, self.epoch_of(step))
        first = self._first_place(step)
        return self.share(order[first : first + self.rows_per_batch])

    def batch_size_of(self, step: int) -> int:
        """Return how many rows all ranks together train on in step ``step``."""
        return min(self.rows_per_batch, self.rows - self._first_place(step))

    def share(self, batch: Sequence[Item]) -> list[Item]:
        """Return this rank's rows of an optimizer batch: neighbours, and on every rank as many up to one."""
        each, more = divmod(len(batch), self.world_size)
        start = self.rank * each + min(self.rank, more)
        return list(batch[start : start + each + (self.rank < more)])

    def _first_place(self, step: int) -> int:
        return (self.step_in_epoch(step) - 1) // self.updates_per_batch * self.rows_per_batch

    def identity(self) -> dict[str, int]:
        """Return what must be unchanged for a checkpoint's step to mean the same rows."""
        values = asdict(self)
        return {name: values[name] for name in ("rows", "rows_per_batch", "updates_per_batch", "seed")}


@lru_cache(maxsize=1)
def _order(rows: int, seed: int, epoch: int) -> list[int]:
    order = list(range(rows))
    random.Random(f"{seed}/{epoch}").shuffle(order)
    return order
