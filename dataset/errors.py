"""What is wrong with a data file, in one line that a person can act on."""

from dataclasses import dataclass, field
from pathlib import Path

KEPT = 20  # reasons
SHOWN = 3


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


@dataclass
class Skipped:
    """The rows of a file that cannot be used: how many of how many, and the first as (row, reason)."""

    path: Path
    rows: int = 0
    count: int = 0
    first: list[tuple[int, str]] = field(default_factory=list)

    def add(self, row: int, reason: str) -> None:
        """Count one more row."""
        self.count += 1
        if len(self.first) < KEPT:
            self.first.append((row, reason))

    def require_usable(self) -> None:
        """Raise DataError when no row is left."""
        if self.count == self.rows:
            raise DataError(self.path, None, f"none of its {self.rows:,} rows can be used: {self.reasons()}")

    def summary(self) -> str:
        """Return one line for the log; empty when every row can be used."""
        if not self.count:
            return ""
        return (
            f"warning: {self.count:,} of {self.rows:,} rows of {self.path.name} cannot be used and are skipped: "
            f"{self.reasons()}"
        )

    def reasons(self) -> str:
        """Return the first reasons with their rows."""
        reasons = [f"row {row}: {reason}" for row, reason in self.first[:SHOWN]]
        return "; ".join(reasons + ["…"] * (self.count > SHOWN))
