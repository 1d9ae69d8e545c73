"""Find the first failure pattern that a line matches.

Patterns come from operators, so each has little time, and one that cannot be used is left out with a warning. Only a
main thread can be interrupted in a search, which holds up every other thread; the web, which answers in others, asks a
process of its own (``first_match_apart``). That one imports no Django.
"""

import json
import logging
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import NamedTuple, Protocol

LONGEST_LINE = 1000  # characters
PATIENCE = 0.5  # seconds for one pattern; its search holds up the whole process, heartbeats included
PATIENCE_APART = 20.0  # seconds for all of them
REPOSITORY = Path(__file__).resolve().parents[2]

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


def first_match(
    patterns: Iterable[Pattern], lines: Sequence[str], *, of_the_end: Sequence[str] | None = None
) -> Match | None:
    """Return the first of ``patterns`` that matches a line, with the last such line; in a main thread alone.

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


def first_match_apart(patterns: Iterable[Pattern], lines: Sequence[str]) -> Match | None:
    """Return what ``first_match`` does in a process of its own; any thread may ask.

    Raises:
        TooSlow: too many patterns are slow on these lines.
    """
    known = list(patterns)
    asked = json.dumps([[[pattern.title, pattern.pattern] for pattern in known], lines])
    argv = [sys.executable, "-m", "jobs.worker.first_match"]
    try:
        done = subprocess.run(
            argv, input=asked.encode(), stdout=subprocess.PIPE, timeout=PATIENCE_APART, cwd=REPOSITORY, check=True
        )
    except subprocess.TimeoutExpired:
        raise TooSlow(f"not done within {PATIENCE_APART} s") from None
    answer = json.loads(done.stdout)
    return Match(known[answer[0]], answer[1]) if answer else None


@contextmanager
def time_for_one(seconds: float) -> Iterator[None]:
    """Raise ``TooSlow`` in the block after ``seconds``."""

    def give_up(number: int, frame: FrameType | None) -> None:
        raise TooSlow(f"not done within {seconds} s")

    previous = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def _answer() -> None:
    """Read patterns and lines from stdin; write the place of the pattern and its line, or null."""
    rows, lines = json.load(sys.stdin.buffer)
    known = [
        SimpleNamespace(title=title, pattern=pattern, advice="", machine_fault=False, out_of_memory=False)
        for title, pattern in rows
    ]
    found = first_match(known, lines)
    places = [place for place, pattern in enumerate(known) if found and pattern is found.pattern]
    sys.stdout.write(json.dumps([places[0], found.line] if found else None))


if __name__ == "__main__":
    _answer()
