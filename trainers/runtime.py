"""One execution of a training: run folder, device, seed, signals, exit code, result. Imports torch after the first line."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainers.cli import Command
from trainers.configs import TrainConfig
from trainers.records import Records

if TYPE_CHECKING:
    import torch
    from torch import nn

    from trainers.schedule import Schedule


@dataclass
class Run:
    """What an algorithm knows of its execution."""

    config: TrainConfig
    folder: Path
    device: torch.device
    records: Records
    log: Callable[[str], None]
    stop_requested: bool = False
    step: int = 0

    def autocast(self) -> AbstractContextManager[Any]:
        """Return the context of forward passes: ``dtype`` on a GPU, fp32 on the CPU."""
        raise NotImplementedError

    def resume(self, model: nn.Module, optimizer: torch.optim.Optimizer, schedule: Schedule) -> dict[str, Any]:
        """Continue from the checkpoint if asked and there is one: sets ``step``, returns the algorithm's own state."""
        raise NotImplementedError

    def save_or_stop(self, model: nn.Module, optimizer: torch.optim.Optimizer, schedule: Schedule, *,
                     extra: dict[str, Any] | None = None) -> None:
        """Write a checkpoint every ``save_interval`` steps, and before ending on request.

        Raises:
            Stopped: the run was asked to end.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Outcome:
    """How a training ended."""

    steps: int
    total_steps: int
    stopped_early: bool = False
    published: str | None = None
    data_sha256: str | None = None
    notes: dict[str, Any] = field(default_factory=dict)


def run(command: Command) -> int:
    """Run the training and return its exit code."""
    raise NotImplementedError
