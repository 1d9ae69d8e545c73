"""Child processes with a log file each, started again when they die, that never outlive this process."""

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

TETHER = Path(__file__).with_name("tether.py")
REPOSITORY = Path(__file__).resolve().parents[2]
LONGEST_LOG = 20_000_000  # bytes; a longer log is set aside when its process starts
FIRST_DELAY, LONGEST_DELAY = 1.0, 30.0  # seconds before a dead process is started again
HEALTHY_AFTER = 60.0  # seconds of running after which the next death counts as the first

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Program:
    """What to run, and how long it may take to stop."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    stop_timeout: float = 10.0


class Child:
    """One program kept running."""

    def __init__(self, program: Program, log_folder: Path) -> None:
        self.program = program
        self.log = log_folder / f"{program.name}.log"
        self.started_at = 0.0
        self.restart_at: float | None = None
        self.delay = FIRST_DELAY
        self._process: subprocess.Popen[bytes] | None = None

    def __str__(self) -> str:
        return self.program.name

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the program in a session of its own, so that a terminal's Ctrl-C reaches only the launcher."""
        self.log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _set_long_log_aside(self.log)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-IS", str(TETHER), str(os.getpid()), *self.program.argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=REPOSITORY,
                env={**os.environ, **self.program.env},
                start_new_session=True,
            )
        self.started_at, self.restart_at = time.monotonic(), None

    def revive(self) -> str | None:
        """Start a dead program again once its delay is over; return what a person should know of it, if anything."""
        if self._process is None or self.is_running:
            return None
        now = time.monotonic()
        if self.restart_at is None:
            self._kill_group()
            self.delay = FIRST_DELAY if now - self.started_at > HEALTHY_AFTER else min(self.delay * 2, LONGEST_DELAY)
            self.restart_at = now + self.delay
            return f"{self} {self._end()}; starting it again in {self.delay:.0f} s (log: {self.log})"
        if now >= self.restart_at:
            self.start()
            return f"{self} is started again"
        return None

    def terminate(self) -> None:
        """Ask the program to stop."""
        if self._process is not None and self.is_running:
            self._process.terminate()

    def finish(self, deadline: float) -> None:
        """Wait for the program's end until ``deadline`` (monotonic seconds); then end it and what it left behind."""
        if self._process is None:
            return
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            logger.warning("%s did not stop in time and is killed", self)
        self._kill_group()
        self._process.wait()
        self._process = None

    def _end(self) -> str:
        code = self._process.poll() if self._process else None
        return f"died of {signal.Signals(-code).name}" if code is not None and code < 0 else f"ended with status {code}"

    def _kill_group(self) -> None:
        if self._process is not None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                return


def stop_together(children: Sequence[Child]) -> None:
    """Stop the children side by side, each within its own time."""
    for child in children:
        child.terminate()
    start = time.monotonic()
    for child in children:
        child.finish(start + child.program.stop_timeout)


def _set_long_log_aside(log: Path) -> None:
    if log.exists() and log.stat().st_size > LONGEST_LOG:
        log.replace(log.with_suffix(".log.1"))
