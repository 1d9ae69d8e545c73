"""How each error ends a run: its exit code and the line that says what to change. Imports no torch."""

import math
import traceback
from dataclasses import dataclass

from dataset.errors import DataError
from trainers.cli import BAD_CONFIGURATION
from trainers.configs import RolloutConfig, TrainConfig
from trainers.errors import ConfigurationError, Diverged, Parted, Stopped, first_line, is_disk_full, is_out_of_memory
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


def memory_advice(config: TrainConfig) -> str:
    """Return which parameters to lower, with values, for the same result in less memory where that is possible."""
    size = f"batch_size {config.batch_size}, max_seq_len {config.max_seq_len}"
    cut = {name: getattr(config, name) for name in ("batch_size", "mini_batch_size") if hasattr(config, name)}
    if (shared := math.gcd(*cut.values())) > 1:
        by = next(part for part in range(2, shared + 1) if shared % part == 0)
        smaller = " ".join(f"--{name} {value // by}" for name, value in cut.items())
        steps = config.accumulation_steps * by
        return f"with {size}; {smaller} --accumulation_steps {steps} gives the same result in less memory"
    if isinstance(config, RolloutConfig):
        return f"with {size}; try --max_gen_len {max(1, config.max_gen_len // 2)}, fewer generations or a smaller model"
    return f"with {size}; try --max_seq_len {max(2, config.max_seq_len // 2)} or a smaller model"


def _said(code: int, line: str, error: Exception) -> Exit:
    return Exit(code, str(error), line)
