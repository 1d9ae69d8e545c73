"""Carry a trainer's output into log.txt. A full disk or a full log costs lines, never the trainer."""

import os
import select
import threading
from pathlib import Path

READ = 65_536  # bytes
TURN = 0.2  # seconds


class Pump(threading.Thread):
    """Read a pipe until it ends, append to a log of at most ``limit`` bytes."""

    def __init__(self, source: int, log: Path, *, limit: int) -> None:
        super().__init__(name="pump", daemon=True)
        self._source = source
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._room = limit - os.fstat(self._log).st_size
        self._limit = limit
        self._dropped = 0
        self._closing = threading.Event()

    def run(self) -> None:
        while True:
            if select.select([self._source], [], [], TURN)[0]:
                data = os.read(self._source, READ)
                if not data:
                    break
                self._keep(data)
            elif self._closing.is_set():
                break
        os.close(self._source)
        os.close(self._log)

    def finish(self) -> None:
        """Take what is left in the pipe, then end, even if a process that escaped still holds the other side."""
        self._closing.set()
        self.join()

    def _keep(self, data: bytes) -> None:
        if self._room <= 0:
            return
        if len(data) > self._room:
            data = data[: self._room] + f"\n[the log ends here: its limit is {self._limit} bytes]\n".encode()
            self._room = 0
        if self._dropped:
            data = f"\n[{self._dropped} bytes are missing here: the disk was full]\n".encode() + data
        self._append(data)

    def _append(self, data: bytes) -> None:
        try:
            written = os.write(self._log, data)
        except OSError:
            self._dropped += len(data)
            return
        self._room -= written
        self._dropped = len(data) - written
