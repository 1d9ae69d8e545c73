"""How each error ends a run: its exit code and the line that says what to change. Imports no torch."""

import traceback
from dataclasses import dataclass

from dataset.errors import DataError
from trainers.advice import memory_advice
from trainers.cli import BAD_CONFIGURATION
from trainers.configs import TrainConfig
from trainers.errors import (
    ConfigurationError,
    Diverged,
    Parted,
    Stopped,
    first_line,
    is_disk_full,
    is_out_of_memory,
    is_storage_fault,
)
from trainers.paths import PathRefused

DONE, FAILED, STOPPED, OUT_OF_MEMORY = 0, 1, 3, 4


@dataclass(frozen=True)
class Exit:
    """An exit code, its one line, and what the log says."""

    code: int
    line: str
    log: str


def exit_of(error: Exception, config: TrainConfig) -> Exit:
    """Return how ``error`` ends the run."""
    match error:
        case ConfigurationError() | DataError() if is_storage_fault(error):
            return _said(FAILED, f"error: {error}", error)  # nothing that was asked is wrong
        case ConfigurationError() | DataError() | PathRefused():
            return _said(BAD_CONFIGURATION, f"error: {error}", error)
        case Stopped():
            return _said(STOPPED, str(error), error)
        case Diverged():
            return _said(FAILED, f"error: {error}", error)
        case Parted():
            return Exit(FAILED, "", "")  # the reason is another process's
        case _ if is_disk_full(error):
            line = "the disk is full; make room, then resume from the last checkpoint"
            return Exit(FAILED, line, f"error: {line}")
        case _ if is_out_of_memory(error):
            line = f"out of memory: {memory_advice(config)}"
            return Exit(OUT_OF_MEMORY, line, f"{''.join(traceback.format_exception(error))}error: {line}")
    return Exit(FAILED, first_line(error), "".join(traceback.format_exception(error)))


def _said(code: int, line: str, error: Exception) -> Exit:
    return Exit(code, str(error), line)
