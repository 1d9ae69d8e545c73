"""metrics.jsonl and samples.jsonl: what a run reports while it trains. Imports no torch."""

import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainers.atomic import replacing

EVALUATION = "eval/"


class Records:
    """Append to the two files of one run folder, and remember what the result needs.

    Of several ranks only the main one ``writes``; the others follow along.
    """

    def __init__(self, folder: Path, *, writes: bool = True) -> None:
        self.writes = writes
        self.metrics_path = folder / "metrics.jsonl"
        self.samples_path = folder / "samples.jsonl"
        self.first: dict[str, float] = {}
        self.last: dict[str, float] = {}
        self.evaluations: dict[int, dict[str, float]] = {}
        for row in read_rows(self.metrics_path):
            self._remember(row["step"], row["values"])

    def metrics(self, step: int, values: Mapping[str, float], *, epoch: int, total_steps: int) -> None:
        """Append one line of finite numbers.

        Raises:
            ValueError: a value is not finite.
        """
        numbers = {name: float(value) for name, value in values.items()}
        broken = [name for name, value in numbers.items() if not math.isfinite(value)]
        if broken:
            raise ValueError(f"step {step}: {', '.join(broken)} not finite")
        row = {"step": step, "total_steps": total_steps, "epoch": epoch, "time": time.time(), "values": numbers}
        if self.writes:
            _append(self.metrics_path, row)
        self._remember(step, numbers)

    def sample(self, row: Mapping[str, Any]) -> None:
        """Append one prompt with its completions: step, kind, prompt, answer, completions."""
        if self.writes:
            _append(self.samples_path, row)

    def drop_after(self, step: int) -> None:
        """Forget what lies beyond the checkpoint at ``step``, so that no step stands twice."""
        for path in (self.metrics_path, self.samples_path):
            if self.writes and path.exists():
                _rewrite(path, [row for row in read_rows(path) if row["step"] <= step])
        self.first, self.last, self.evaluations = {}, {}, {}
        for row in read_rows(self.metrics_path):
            self._remember(row["step"], row["values"])

    def _remember(self, step: int, values: dict[str, float]) -> None:
        self.first = {**values, **self.first}
        self.last = {**self.last, **values}
        evaluation = {name: value for name, value in values.items() if name.startswith(EVALUATION)}
        if evaluation:
            self.evaluations[step] = evaluation


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a records file; a line that a kill or a full disk left in pieces is left out."""
    if not path.exists():
        return []
    rows = map(_row_or_none, path.read_bytes().split(b"\n")[:-1])  # what follows the last line break was cut short
    return [row for row in rows if row is not None]


def _row_or_none(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:  # no JSON, or no UTF-8
        return None
    return row if isinstance(row, dict) and "step" in row else None


def _append(path: Path, row: Mapping[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(_line(row))


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"


def _rewrite(path: Path, rows: list[dict[str, Any]]) -> None:
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(map(_line, rows))
