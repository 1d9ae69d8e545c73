"""Which of several processes this one is, and why the others ended. Imports no torch.

The processes of one training share its run folder. One that fails says so in a file there before it lets go of the
others, which notice only that it is gone; the main one then gives that reason as the run's.
"""

import json
import os
import shutil
import time
from dataclasses import asdict
from pathlib import Path

from trainers.exits import FAILED, Exit

PATIENCE_S = 3.0  # for the others' files; a process that left none by then was killed


def rank() -> int:
    """Return which process this one is, from 0, as ``torchrun`` and ``--processes`` number them."""
    return int(os.environ.get("RANK", "0"))


def world_size() -> int:
    """Return how many processes train together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_main() -> bool:
    """Return whether this process writes the run folder and the log."""
    return rank() == 0


class Endings:
    """How the processes beside the main one failed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / ".ranks"

    def begin(self) -> None:
        """Make room for them; the main process does, for all."""
        if is_main() and world_size() > 1:
            self.close()
            self.folder.mkdir()

    def tell(self, ending: Exit) -> None:
        """Leave this process's ending for the main one, if that still wants to know."""
        if not self.folder.is_dir():
            return
        temporary = self.folder / f"{rank()}.tmp"
        temporary.write_text(json.dumps(asdict(ending)))
        temporary.replace(self._file(rank()))

    def of_others(self) -> Exit:
        """Return why another process is gone: the first that says so, else which one says nothing at all."""
        others = range(1, world_size())
        until = time.monotonic() + PATIENCE_S
        while True:
            told = {number: ending for number in others if (ending := self._read(number)) is not None}
            if reasons := {number: ending for number, ending in told.items() if ending.line}:
                number, ending = next(iter(reasons.items()))
                who = f"process {number} of {world_size()}: "
                return Exit(ending.code, who + ending.line, who + ending.log)
            if len(told) == len(others) or time.monotonic() > until:
                break
            time.sleep(0.05)
        gone = ", ".join(str(number) for number in others if number not in told)
        line = f"process {gone} of {world_size()} died (see above)"
        if not gone:
            line = f"the connection between the {world_size()} processes broke"
        return Exit(FAILED, line, f"error: {line}")

    def close(self) -> None:
        """Remove them."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _file(self, number: int) -> Path:
        return self.folder / f"{number}.json"

    def _read(self, number: int) -> Exit | None:
        try:
            return Exit(**json.loads(self._file(number).read_text()))
        except FileNotFoundError:
            return None
