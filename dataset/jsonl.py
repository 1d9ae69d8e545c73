"""Random access to the rows of a JSONL file without loading it."""

import hashlib
import json
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from dataset.errors import DataError

Row = dict[str, Any]
Parsed = TypeVar("Parsed")


class JsonLines:
    """A JSONL file: one JSON object per line, of which only the byte offsets are held in memory.

    The file is opened for each row, so that forked or spawned reader processes share no file position.

    Raises:
        DataError: the file is missing, unreadable or empty; later, when a row is no JSON object in UTF-8.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self._offsets = _line_offsets(self.path)
        except OSError as error:
            raise DataError(self.path, None, f"cannot be read: {error.strerror} ({self.path})") from None
        if not len(self):
            raise DataError(self.path, None, f"has no rows ({self.path})")

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, index: int) -> Row:
        return self.parsed(index, dict)

    def parsed(self, index: int, parse: Callable[[Row], Parsed]) -> Parsed:
        """Return what ``parse`` makes of one row; its ValueError becomes a DataError with the row's number."""
        index = range(len(self))[index]
        try:
            return parse(_decode(self._line(index)))
        except ValueError as error:
            raise DataError(self.path, index + 1, str(error)) from None

    def sha256(self) -> str:
        """Return the digest of the file, as hexadecimal text."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def _line(self, index: int) -> bytes:
        start, end = self._offsets[index], self._offsets[index + 1]
        with self.path.open("rb") as file:
            file.seek(start)
            return file.read(end - start)


def _line_offsets(path: Path) -> "array[int]":
    """Return where each line begins, and where the last one ends; blank lines at the end of the file do not count."""
    offsets, position, end = array("Q"), 0, 0
    with path.open("rb") as file:
        for line in file:
            offsets.append(position)
            position += len(line)
            if not line.isspace():
                end, rows = position, len(offsets)
    return offsets[:rows] + array("Q", [end]) if end else array("Q", [0])


def _decode(line: bytes) -> Row:
    try:
        row = json.loads(line.rstrip().decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON ({error.msg} at column {error.colno})") from None
    except RecursionError:
        raise ValueError("is not JSON (nested too deeply)") from None
    if not isinstance(row, dict):
        raise ValueError("is not a JSON object")
    return row
