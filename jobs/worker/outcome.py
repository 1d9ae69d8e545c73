"""Say how an attempt ended and why, from its exit status, its result and its output."""

import json
import re
import signal
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

from jobs.models import Attempt
from jobs.worker.guard import NO_LOCK, SIGNALLED
from jobs.worker.last_line import last_meaningful_line
from jobs.worker.signals import described, signal_name
from jobs.worker.tail import storable

DONE, BAD_CONFIGURATION, STOPPED, OUT_OF_MEMORY = 0, 2, 3, 4  # the trainers' exit codes
LONGER = "resume it with a longer limit"
CHILD_KILLED = re.compile(r"killed by signal: Killed|SIGKILL|exitcode *: -9|exit code -9|process \d+ of \d+ died")

Outcome = Attempt.Outcome


class Asked(IntEnum):
    """Why the worker asked the trainer to end; of several reasons the highest counts."""

    DRAIN = 1
    YIELD = 2
    TIME_LIMIT = 3
    CANCEL = 4


class Wish(NamedTuple):
    """That an attempt shall end, and why in words. Of two wishes the greater counts."""

    asked: Asked
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How an attempt ended; ``again`` puts its job back in the queue."""

    outcome: str
    cause: str = ""
    advice: str = ""
    exit_code: int | None = None
    again: bool = False


def classify(
    status: int, folder: Path, *, output: str = "", wish: Wish | None = None, oom_killed: bool = False
) -> Ending:
    """Return the ending of a guard that exited with ``status`` (negative: the guard itself was killed).

    ``output`` is the end of what the trainer said, ``oom_killed`` whether the kernel killed for memory meanwhile.
    An error of the trainer is an error even while it was asked to end, except that a cancelled job was cancelled.
    """
    exit_code = SIGNALLED - status if status >= SIGNALLED else status
    result = read_result(folder)
    if exit_code == DONE and result is not None:
        return completed(result)
    if wish and (wish.asked is Asked.CANCEL or exit_code < 0 or exit_code in (STOPPED, NO_LOCK)):
        return _as_wished(wish, folder, exit_code)
    if status < 0 or exit_code in (STOPPED, NO_LOCK):
        return Ending(outcome=Outcome.LOST, cause=_machine_fault(status), exit_code=exit_code, again=True)
    said = _said(result, output)
    if oom_killed and (exit_code == -signal.SIGKILL or CHILD_KILLED.search(f"{said}\n{output}")):
        cause = "the machine ran out of memory: the kernel killed the trainer (SIGKILL)"
        return Ending(outcome=Outcome.OUT_OF_MEMORY, cause=cause, exit_code=exit_code)
    outcome = Outcome.OUT_OF_MEMORY if exit_code == OUT_OF_MEMORY else Outcome.FAILED
    return Ending(outcome=outcome, cause=_failure(exit_code, said), exit_code=exit_code)


def _as_wished(wish: Wish, folder: Path, exit_code: int) -> Ending:
    cause = "; ".join(filter(None, (wish.why, _checkpoint(folder))))
    match wish.asked:
        case Asked.CANCEL:
            return Ending(outcome=Outcome.CANCELLED, cause=cause, exit_code=exit_code)
        case Asked.TIME_LIMIT:
            return Ending(outcome=Outcome.TIMED_OUT, cause=cause, advice=LONGER, exit_code=exit_code)
    return Ending(outcome=Outcome.DRAINED, cause=cause, exit_code=exit_code, again=True)


def completed(result: dict[str, Any]) -> Ending:
    """Return the ending of a success; one before its last step says why."""
    cause = "ended early: stop_at was reached" if result.get("stopped_early") else ""
    return Ending(outcome=Outcome.COMPLETED, cause=cause, exit_code=DONE)


def read_result(folder: Path) -> dict[str, Any] | None:
    """Return result.json, or ``None`` when the attempt did not get that far."""
    try:
        result = storable(json.loads((folder / "result.json").read_bytes(), parse_constant=lambda _: None))
    except (OSError, ValueError):
        return None
    return result if isinstance(result, dict) else None


def _machine_fault(status: int) -> str:
    if status == NO_LOCK:
        return "the device did not become free"
    if status == STOPPED:
        return "the trainer was stopped from outside, after it saved a checkpoint"
    return f"the trainer's guard was killed by {signal_name(-status)}"


def _said(result: dict[str, Any] | None, output: str) -> str:
    """Return what the trainer gave as the reason; its last meaningful line where it wrote no result."""
    return str((result or {}).get("error") or last_meaningful_line(output)).removeprefix("error: ")


def _failure(exit_code: int, said: str) -> str:
    if exit_code < 0:
        return f"the trainer was killed by {described(-exit_code)}"
    if exit_code == DONE:
        return "the trainer ended without a result"
    return said or f"the trainer ended with exit code {exit_code}"


def _checkpoint(folder: Path) -> str:
    try:
        step = json.loads((folder / "checkpoint" / "meta.json").read_bytes())["step"]
    except (OSError, ValueError, KeyError, TypeError):
        return "no checkpoint"
    return f"checkpoint at step {step}"
