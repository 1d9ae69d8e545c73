"""Follow files that another process writes: bytes of a log, rows of a JSONL file that may be replaced."""

import json
import logging
import os
from pathlib import Path
from typing import Any

LONGEST_READ = 4_000_000  # bytes in one turn

logger = logging.getLogger(__name__)


class LogTail:
    """Bytes appended to a log since ``position``."""

    def __init__(self, path: Path, position: int = 0) -> None:
        self.path = path
        self.position = position

    def read(self, most: int) -> bytes:
        """Return at most ``most`` new bytes."""
        if not self.path.exists():
            return b""
        with self.path.open("rb") as file:
            file.seek(self.position)
            data = file.read(most)
        self.position += len(data)
        return data


class RowTail:
    """Complete rows that appear in a JSONL file; a file that was replaced or cut is read from its beginning."""

    def __init__(self, path: Path, *, only_new: bool) -> None:
        self.path = path
        self._identity, self._position = 0, 0
        if only_new and path.exists():
            status = path.stat()
            self._identity, self._position = status.st_ino, status.st_size

    def read(self) -> tuple[list[dict[str, Any]], bool]:
        """Return new rows, and whether they begin at the file's beginning."""
        if not self.path.exists():
            return [], False
        with self.path.open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_ino != self._identity or status.st_size < self._position:
                self._identity, self._position = status.st_ino, 0
            from_start = self._position == 0
            file.seek(self._position)
            data = file.read(LONGEST_READ)
        complete = data[: data.rfind(b"\n") + 1]
        self._position += len(complete)
        return [row for line in complete.splitlines() if (row := parse_row(line)) is not None], from_start


def parse_row(line: bytes) -> dict[str, Any] | None:
    """Return one row; a line that a database could not keep is left out with a warning."""
    try:
        row = json.loads(line.decode(errors="replace"), parse_constant=_refuse)
        if not isinstance(row, dict) or not isinstance(row["step"], int) or row["step"] < 0:
            raise ValueError("no step")
    except (ValueError, KeyError) as error:
        logger.warning("row left out (%s): %.200r", error, line)
        return None
    clean: dict[str, Any] = storable(row)
    return clean


def storable(value: Any) -> Any:
    """Return ``value`` with the characters replaced that PostgreSQL cannot store: NUL and lone surrogates."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode(errors="replace").decode()
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(name): storable(item) for name, item in value.items()}
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")
