"""One pass over a JSONL file: where its usable rows begin, and what is wrong with the others."""

import json
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from dataset.errors import DataError, Skipped

MAX_ROW = 16 * 2**20  # bytes; a longer line is no row, and is never held in memory as a whole

Row = dict[str, Any]
Check = Callable[[Row], object]


@dataclass
class Index:
    """The usable rows of a file: where each begins, in bytes, and its number in the file, counted from 1."""

    skipped: Skipped
    offsets: "array[int]" = field(default_factory=lambda: array("Q"))
    numbers: "array[int]" = field(default_factory=lambda: array("I"))


def scan_rows(path: Path, check: Check | None, *, strict: bool) -> Index:
    """Return which rows of a file can be used; its last blank lines are no rows.

    Args:
        path: The JSONL file.
        check: Raises ValueError for a row that cannot be used; without it, rows are not even parsed.
        strict: Stop at the first bad row.

    Raises:
        DataError: the file cannot be read or has no rows; with ``strict``, the first row that cannot be used.
    """
    index = Index(Skipped(path))
    try:
        for number, offset, line in _lines(path):
            index.skipped.rows = number
            try:
                _check_line(line, check)
            except ValueError as error:
                if strict:
                    raise DataError(path, number, str(error)) from None
                index.skipped.add(number, str(error))
            else:
                index.offsets.append(offset)
                index.numbers.append(number)
    except OSError as error:
        raise DataError(path, None, f"cannot be read: {error.strerror} ({path})") from None
    if not index.skipped.rows:
        raise DataError(path, None, f"has no rows ({path})")
    return index


def read_line(file: BinaryIO) -> bytes:
    """Return the next line, or the first ``MAX_ROW`` bytes of a longer one."""
    return file.readline(MAX_ROW)


def decode_row(line: bytes) -> Row:
    """Return the object that a line holds.

    Raises:
        ValueError: it is no JSON object in UTF-8, or names a key twice.
    """
    try:
        row = DECODER.decode(line.rstrip().decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ValueError(f"is not UTF-8 text{_other_encoding(line)}") from None
    except json.JSONDecodeError as error:
        if b"\0" in line:
            raise ValueError("holds NUL bytes: a file in UTF-16, or one whose writing was cut off") from None
        raise ValueError(f"is not JSON ({error.msg} at column {error.colno})") from None
    except RecursionError:
        raise ValueError("is not JSON (nested too deeply)") from None
    if not isinstance(row, dict):
        raise ValueError("is not a JSON object; each line holds one row")
    return row


def _lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield number, offset and bytes of each line; blank ones only when another line follows."""
    number, offset, blank = 0, 0, 0
    with path.open("rb") as file:
        while line := read_line(file):
            if line.isspace():
                blank += 1
            else:
                yield from ((number + n, offset, b"") for n in range(1, blank + 1))
                number, blank = number + blank + 1, 0
                yield number, offset, line
            offset += len(line) + _skip_rest(file, line)


def _skip_rest(file: BinaryIO, line: bytes) -> int:
    """Read on to the end of a line that is too long, and return how many bytes that were."""
    skipped = 0
    while len(line) == MAX_ROW and not line.endswith(b"\n"):
        line = read_line(file)
        skipped += len(line)
    return skipped


def _check_line(line: bytes, check: Check | None) -> None:
    if not line:
        raise ValueError("is blank")
    if len(line) == MAX_ROW and not line.endswith(b"\n"):
        raise ValueError(f"is longer than {MAX_ROW // 2**20} MiB; each line holds one row")
    if check is not None:
        check(decode_row(line))


def _other_encoding(line: bytes) -> str:
    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "; it looks like UTF-16"
    try:
        line.decode("gb18030")
    except UnicodeDecodeError:
        return ""
    return "; it may be GBK: iconv -f GB18030 -t UTF-8"


def _object(pairs: list[tuple[str, Any]]) -> Row:
    row = dict(pairs)
    if len(row) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"has the key {next(key for key in row if keys.count(key) > 1)!r} twice")
    return row


def _constant(name: str) -> None:
    raise ValueError(f"is not JSON ({name} is no value)")


DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)
