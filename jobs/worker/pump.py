"""Carry a trainer's output into log.txt. A full disk or a full log costs lines, never the trainer."""

import os
import select
import threading
from pathlib import Path

READ = 65_536  # bytes
KEPT = 16_384  # bytes
TURN = 0.2  # seconds


class Pump(threading.Thread):
    """Read a pipe until it ends, append to a log of at most ``limit`` bytes."""

    def __init__(self, source: int, log: Path, *, limit: int) -> None:
        super().__init__(name="pump", daemon=True)
        self._source = source
        self._path, self._limit = log, limit
        self._log: int | None = None
        self._room = limit
        self._dropped = 0
        self._is_full = False
        self._end = b""
        self._closing = threading.Event()

    @property
    def end(self) -> str:
        """The end of the output, whether or not the disk had room for it; to be read when the thread has ended."""
        return self._end.decode(errors="replace")

    def run(self) -> None:
        while True:
            if select.select([self._source], [], [], TURN)[0]:
                data = os.read(self._source, READ)
                if not data:
                    break
                self._keep(data)
            elif self._closing.is_set():
                break
        if self._dropped:
            self._append(b"")  # there may be room again, if only to say what is missing
        os.close(self._source)
        if self._log is not None:
            os.close(self._log)

    def finish(self) -> None:
        """Take what is left in the pipe, then end, even if a process that escaped still holds the other side."""
        self._closing.set()
        self.join()

    def _keep(self, data: bytes) -> None:
        self._end = (self._end + data)[-KEPT:]
        if not self._is_full:
            self._append(data)

    def _append(self, data: bytes) -> None:
        """Append what the limit leaves room for, behind a mark where bytes are missing."""
        gap = f"\n[{self._dropped} bytes are missing here: the disk was full]\n".encode() if self._dropped else b""
        try:
            log = self._open()
            fitting = data[: max(self._room, 0)]
            limit = b"" if fitting == data else f"\n[the log ends here: its limit is {self._limit} bytes]\n".encode()
            text = gap + fitting + limit
            written = os.write(log, text)
        except OSError:
            self._dropped += len(data)
            return
        self._is_full = bool(limit) and written == len(text)
        self._note(max(written - len(gap), 0), of=fitting, marked=written >= len(gap))

    def _note(self, kept: int, *, of: bytes, marked: bool) -> None:
        kept = min(kept, len(of))
        self._room -= kept
        self._dropped = len(of) - kept + (0 if marked else self._dropped)

    def _open(self) -> int:
        if self._log is None:
            self._log = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            self._room = self._limit - os.fstat(self._log).st_size
        return self._log
