"""Name a failure for people: the first known pattern that a line of the output matches, and its advice.

Patterns come from operators, so each has little time, and one that cannot be used is left out with a warning.
"""

import logging
import re
import signal
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import NamedTuple, Protocol

from jobs.worker.last_line import TRACEBACK, readable_lines
from jobs.worker.outcome import BAD_CONFIGURATION, Ending, Outcome

LONGEST_LINE = 1000  # characters
LONGEST_SHOWN, LONGEST_BESIDE = 200, 100  # characters of the line that matched, and of the ending's own cause
PATIENCE = 0.5  # seconds for one pattern; its search holds up the whole process, heartbeats included

logger = logging.getLogger(__name__)


class Pattern(Protocol):
    """What a line means, as a ``FailurePattern`` says it."""

    title: str
    pattern: str
    advice: str
    machine_fault: bool
    out_of_memory: bool


class Match(NamedTuple):
    """A pattern and the last line that it matches."""

    pattern: Pattern
    line: str


class TooSlow(Exception):
    """A pattern was not done in time."""


def name_failure(
    ending: Ending, output: str, patterns: Iterable[Pattern], *, memory_advice: str = "", place: str = ""
) -> Ending:
    """Return a failure's ending under the name of the first pattern that matches its cause or the output.

    A fault of the machine puts the job back in the queue, unless the trainer called the configuration bad: what a
    person has to change is not tried again. ``place`` says where a machine failed.
    """
    if ending.outcome not in (Outcome.FAILED, Outcome.OUT_OF_MEMORY):
        return ending
    if ending.exit_code == BAD_CONFIGURATION:
        found = first_match(patterns, [ending.cause])
        return replace(ending, advice=found.pattern.advice if found else "")
    if ending.outcome == Outcome.OUT_OF_MEMORY:
        patterns = [pattern for pattern in patterns if pattern.out_of_memory]
    lines = [*readable_lines(output), ending.cause]
    died = ending.exit_code is None or ending.exit_code < 0
    found = first_match(patterns, lines, of_the_end=lines if died else said_at_the_end(lines))
    if ending.outcome == Outcome.OUT_OF_MEMORY or (found and found.pattern.out_of_memory):
        return _out_of_memory(ending, found, memory_advice)
    if found is None:
        return ending
    cause, advice = _cause(ending, found), found.pattern.advice
    if found.pattern.machine_fault:
        where = f" ({place})" if place else ""
        return replace(ending, outcome=Outcome.LOST, cause=f"{cause}{where}", advice=advice, again=True)
    return replace(ending, cause=cause, advice=advice)


def said_at_the_end(lines: Sequence[str]) -> list[str]:
    """Return what a program says when it gives up: from its first traceback on, and its ``error:`` lines.

    A warning before that which speaks of a disk or a GPU shall not send a person's mistake back to the queue.
    """
    crash = lines.index(TRACEBACK) if TRACEBACK in lines else len(lines) - 1
    return [line for index, line in enumerate(lines) if index >= crash or line.startswith("error: ")]


def first_match(
    patterns: Iterable[Pattern], lines: Sequence[str], *, of_the_end: Sequence[str] | None = None
) -> Match | None:
    """Return the first of ``patterns`` that matches a line, with the last such line.

    Where the lines ``of_the_end`` are known, only those tell of a machine's fault.
    """
    for pattern in patterns:
        telling = of_the_end if of_the_end is not None and pattern.machine_fault else lines
        try:
            with time_for_one(PATIENCE):
                expression = re.compile(pattern.pattern)
                line = next((line for line in reversed(telling) if expression.search(line[:LONGEST_LINE])), None)
        except (re.error, RecursionError, TooSlow) as error:
            logger.warning("failure pattern %r is left out: %r", pattern.title, error)
            continue
        if line is not None:
            return Match(pattern, line.strip())
    return None


@contextmanager
def time_for_one(seconds: float) -> Iterator[None]:
    """Raise ``TooSlow`` in the block after ``seconds``; only a main thread can be interrupted so."""

    def give_up(number: int, frame: FrameType | None) -> None:
        raise TooSlow(f"not done within {seconds} s")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def _out_of_memory(ending: Ending, found: Match | None, advice: str) -> Ending:
    """Return it with the allocator's words as the cause, and the advice once."""
    cause = ending.cause.removesuffix(f": {advice}") if advice else ending.cause
    if found:
        cause, advice = _cause(replace(ending, cause=cause), found), advice or found.pattern.advice
    return replace(ending, outcome=Outcome.OUT_OF_MEMORY, cause=cause, advice=advice)


def _cause(ending: Ending, found: Match) -> str:
    """Return the pattern's title and the line that it matched; what the trainer ended with stays in sight."""
    title, line = found.pattern.title, found.line.removeprefix("error: ")
    shown = line[:LONGEST_SHOWN]
    named = shown if title.casefold() in shown.casefold() else f"{title}: {shown}"
    told = ending.cause in f"{title}: {line}" or line in ending.cause
    return named if told else f"{named}; {ending.cause[:LONGEST_BESIDE]}"
