"""Random access to the rows of a JSONL file without loading it."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from dataset.errors import DataError, Skipped
from dataset.scan import Check, Index, Row, decode_row, read_line, scan_rows

__all__ = ["Check", "JsonLines", "Row"]

Parsed = TypeVar("Parsed")


class JsonLines:
    """The usable rows of a JSONL file, of which only the places in the file are held in memory.

    The file is opened for each row, so that forked or spawned reader processes share no file position.

    Args:
        path: The file: one JSON object per line, in UTF-8.
        check: Raises ValueError for a row that cannot be used. All rows are checked at once, in one pass; without it,
            a row is first parsed when it is read.
        strict: Refuse the file at its first bad row; else such rows are left out and counted in ``skipped``.
        index: What a scan of the file found, if there was one already.

    Raises:
        DataError: the file is missing, unreadable, or without a usable row; with ``strict``, the first bad row.
    """

    def __init__(
        self, path: str | Path, *, check: Check | None = None, strict: bool = True, index: Index | None = None
    ) -> None:
        self.path = Path(path)
        index = index or scan_rows(self.path, check, strict=strict)
        self.skipped: Skipped = index.skipped
        self._offsets, self._numbers = index.offsets, index.numbers
        self.skipped.require_usable()

    def __len__(self) -> int:
        return len(self._offsets)

    def __getitem__(self, index: int) -> Row:
        return self.parsed(index, dict)

    def row_number(self, index: int) -> int:
        """Return which row of the file, counted from 1, is the usable row ``index``."""
        return self._numbers[index]

    def parsed(self, index: int, parse: Callable[[Row], Parsed]) -> Parsed:
        """Return what ``parse`` makes of one row; its ValueError becomes a DataError with the row's number."""
        index = range(len(self))[index]
        try:
            return parse(decode_row(self._line(index)))
        except ValueError as error:
            raise DataError(self.path, self.row_number(index), str(error)) from None

    def sha256(self) -> str:
        """Return the digest of the file, as hexadecimal text."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def _line(self, index: int) -> bytes:
        with self.path.open("rb") as file:
            file.seek(self._offsets[index])
            return read_line(file)
