"""Check a whole data file before a job is queued or run. Imports no torch."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from dataset.errors import DataError
from dataset.formats import read_conversation, read_prompt
from dataset.jsonl import JsonLines, Row

Kind = Literal["conversations", "prompts", "answered"]
SAMPLES = 3
MAX_ERRORS = 20


@dataclass
class Report:
    """What a check found: the first errors as (row counted from 1, reason), and the first good rows."""

    rows: int
    errors: list[tuple[int, str]] = field(default_factory=list)
    samples: list[Row] = field(default_factory=list)


def check_file(path: str | Path, kind: Kind, *, strict: bool = False) -> Report:
    """Return what is wrong with a file: at most the first 20 rows that cannot be used.

    Args:
        path: The JSONL file.
        kind: ``conversations`` to learn from, ``prompts``, or prompts that are all ``answered``.
        strict: Raise at the first bad row instead of listing it.

    Raises:
        DataError: the file is missing or empty; with ``strict``, the first bad row.
    """
    rows = JsonLines(path)
    report = Report(rows=len(rows))
    for index in range(len(rows)):
        try:
            rows.parsed(index, CHECKS[kind])
        except DataError as error:
            if strict:
                raise
            report.errors.append((index + 1, error.reason))
            if len(report.errors) == MAX_ERRORS:
                break
        else:
            if len(report.samples) < SAMPLES:
                report.samples.append(rows[index])
    return report


def require_answer(row: Row) -> None:
    """Raise ValueError unless the row is a prompt with an answer."""
    if read_prompt(row).answer is None:
        raise ValueError("has no 'answer'")


CHECKS: dict[Kind, Callable[[Row], Any]] = {
    "conversations": read_conversation,
    "prompts": read_prompt,
    "answered": require_answer,
}
