"""Check a whole data file before a job is queued or run. Imports no torch."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from dataset.errors import Skipped
from dataset.formats import read_conversation, read_pair, read_prompt, read_text
from dataset.scan import Row, scan_rows

Kind = Literal["text", "conversations", "pairs", "prompts", "answered"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SAMPLES = 3


@dataclass
class Report:
    """What a check found: the rows that cannot be used, and the first that can."""

    skipped: Skipped
    samples: list[Row] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """Return how many rows the file has."""
        return self.skipped.rows

    @property
    def usable(self) -> int:
        """Return how many of them can be used."""
        return self.skipped.rows - self.skipped.count

    @property
    def errors(self) -> list[tuple[int, str]]:
        """Return the first 20 rows that cannot be used, counted from 1, with the reason."""
        return self.skipped.first


def check_file(path: str | Path, kind: Kind, *, strict: bool = False) -> Report:
    """Return how many rows of a file can be used, and what is wrong with the others.

    Args:
        path: The JSONL file.
        kind: ``text``, ``conversations`` or ``pairs`` to learn from, ``prompts``, or prompts that are all ``answered``.
        strict: Raise at the first bad row instead of counting it.

    Raises:
        DataError: the file is missing or empty; with ``strict``, the first bad row.
    """
    samples: list[Row] = []

    def look(row: Row) -> None:
        CHECKS[kind](row)
        if len(samples) < SAMPLES:
            samples.append(row)

    return Report(scan_rows(Path(path), look, strict=strict).skipped, samples)


def require_answer(row: Row) -> None:
    """Raise ValueError unless the row is a prompt with an answer."""
    if read_prompt(row).answer is None:
        raise ValueError("has no 'answer'")


CHECKS: dict[Kind, Callable[[Row], object]] = {
    "text": read_text,
    "conversations": read_conversation,
    "pairs": read_pair,
    "prompts": read_prompt,
    "answered": require_answer,
}
