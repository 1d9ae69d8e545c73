"""What is wrong with a data file, in one line that a person can act on."""

from pathlib import Path


class DataError(Exception):
    """A data file, or one row of it (counted from 1), cannot be used."""

    def __init__(self, path: str | Path, row: int | None, reason: str) -> None:
        self.path = Path(path)
        self.row = row
        self.reason = reason
        where = self.path.name if row is None else f"{self.path.name}, row {row}"
        super().__init__(f"{where}: {reason}")

    def __reduce__(self) -> tuple[type["DataError"], tuple[Path, int | None, str]]:
        return type(self), (self.path, self.row, self.reason)
