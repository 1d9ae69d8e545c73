"""Name a failure for people: the first known pattern that a line of the output matches, and its advice."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from jobs.worker.first_match import Match, Pattern, first_match
from jobs.worker.last_line import TRACEBACK, readable_lines
from jobs.worker.outcome import BAD_CONFIGURATION, Ending, Outcome

LONGEST_SHOWN, LONGEST_BESIDE = 200, 100  # characters of the line that matched, and of the ending's own cause


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
