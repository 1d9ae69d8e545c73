"""One trainer under its guard, seen from the supervisor."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from django.conf import settings

from jobs.worker import guard
from jobs.worker.pump import Pump
from trainers.paths import REPOSITORY

SLACK = 2.0  # seconds beyond the grace of a guard whose lifeline ended
TURN = 0.1  # seconds


class TrainerProcess:
    """Start the guard and its program in a session of their own; pump their output into a log."""

    def __init__(
        self, argv: Sequence[str], *, environment: Mapping[str, str], locks: Sequence[Path], log: Path
    ) -> None:
        lifeline, self._lifeline = os.pipe()
        source, sink = os.pipe()
        os.set_blocking(self._lifeline, False)
        needed = os.pathsep.join(map(str, locks))
        watched = [sys.executable, "-IS", guard.__file__, needed, *map(str, self_fencing()), *argv]
        self._cookie = environment.get(guard.COOKIE, "")
        self._guard = subprocess.Popen(
            watched,
            stdin=lifeline,
            stdout=sink,
            stderr=sink,
            cwd=REPOSITORY,
            env=dict(environment),
            start_new_session=True,
        )
        os.close(lifeline)
        os.close(sink)
        self._pump = Pump(source, log, limit=settings.NIGHTSHIFT_LOG_LIMIT)
        self._pump.start()
        self._kill_at: float | None = None

    @property
    def pid(self) -> int:
        """The guard's process id, which is also the group's."""
        return self._guard.pid

    @property
    def output_end(self) -> str:
        """The end of what the trainer said, once it is finished."""
        return self._pump.end

    def is_running(self) -> bool:
        """Tell whether the guard lives; a dead one is left unreaped, so that its group's number stays its own."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def beat(self) -> None:
        """Tell the guard that the supervisor lives."""
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            os.write(self._lifeline, b".")

    def stop(self, grace: float) -> None:
        """Ask the group to end; kill it when it has not done so ``grace`` seconds after the first call."""
        if self._kill_at is None:
            self._kill_at = time.monotonic() + grace
            self._signal(signal.SIGTERM)
        elif time.monotonic() >= self._kill_at:
            self.kill()

    def kill(self) -> None:
        """Kill the guard, the trainer, what they started, and what left their group."""
        self._signal(signal.SIGKILL)
        guard.kill_escaped(self._cookie)

    def finish(self) -> int:
        """Kill what still runs, take the rest of the output, and return the guard's exit status."""
        self.kill()
        status = self._guard.wait()
        os.close(self._lifeline)
        self._pump.finish()
        return status

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)


def self_fencing() -> tuple[float, float]:
    """Return the guard's silence and grace: together they end a trainer before its last renewed lease can expire."""
    lease = settings.NIGHTSHIFT_LEASE
    return 0.7 * lease - settings.NIGHTSHIFT_HEARTBEAT, min(2.0, 0.2 * lease)


def lock_of(name: str) -> Path:
    """Return the file whose lock says that a process uses the device, or the run folder, of that name."""
    folder = Path(settings.NIGHTSHIFT_HOME) / "locks"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}.lock"


def comes_free(lock: Path) -> bool:
    """Tell whether the lock is free, or soon is: what a dead worker left needs seconds to save and end."""
    deadline = time.monotonic() + self_fencing()[1] + SLACK
    while not is_free(lock):
        if time.monotonic() > deadline:
            return False
        time.sleep(TURN)
    return True


def is_free(lock: Path) -> bool:
    """Tell whether no process holds the lock, not even what a dead worker left."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        return guard.take(descriptor)
    finally:
        os.close(descriptor)
