"""Lead a trainer's process group: no trainer without its device's lock, and none without a living supervisor.

``python guard.py <lock file[:lock file]> <silence> <grace> <program> [argument ...]``. Standard input is the lifeline:
the supervisor writes to it while it lives, and when it ends or falls silent for ``silence`` seconds the group gets
SIGTERM, and ``grace`` seconds later SIGKILL. Exits with the program's status, or 128 + the signal that ended it; a
guard that is itself killed takes the program along. Imports nothing that starts slowly.
"""

import contextlib
import fcntl
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

TETHER = Path(__file__).resolve().parent.parent / "stack" / "tether.py"
COOKIE = "NIGHTSHIFT_ATTEMPT"  # in the environment of every process of an attempt
TURN = 0.05  # seconds
SIGNALLED = 128
NO_LOCK = 75  # EX_TEMPFAIL: the lifeline ended before the device became free
FIRST_TO_GO = "500"  # when memory runs out the kernel shall take the trainer, not the worker


class Lifeline:
    """What the supervisor writes to while it lives."""

    def __init__(self, silence: float) -> None:
        self.silence = silence
        self.heard_at = time.monotonic()
        self.ended = False

    def holds(self, wait: float) -> bool:
        """Listen for ``wait`` seconds; tell whether the supervisor still lives."""
        ready = not self.ended and select.select([0], [], [], wait)[0]
        if ready:
            self.ended = not os.read(0, 4096)
            self.heard_at = time.monotonic()
        elif self.ended:
            time.sleep(wait)
        return not self.ended and time.monotonic() - self.heard_at < self.silence


def main(lock_paths: str, silence: float, grace: float, argv: list[str]) -> int:
    """Wait for the device, run the program, and return what it ended with."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # meant for the program, which is in the same group
    lifeline = Lifeline(silence)
    locks = [os.open(path, os.O_RDWR | os.O_CREAT, 0o600) for path in lock_paths.split(os.pathsep)]
    while not all(take(lock) for lock in locks):
        if not lifeline.holds(TURN):
            return NO_LOCK
    program = start(argv, locks)
    watch(program, lifeline, grace)
    kill_escaped(os.environ.get(COOKIE, ""))
    if not lifeline.holds(0):
        os.killpg(0, signal.SIGKILL)  # nobody else is left to clear the group
    return program.returncode if program.returncode >= 0 else SIGNALLED - program.returncode


def take(lock: int) -> bool:
    """Take a lock, or keep it; tell whether that was possible."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def start(argv: list[str], locks: list[int]) -> "subprocess.Popen[bytes]":
    """Start the program in this group; it holds the locks as long as it lives."""
    tied = [sys.executable, "-IS", str(TETHER), str(os.getpid()), *argv]
    program = subprocess.Popen(tied, stdin=subprocess.DEVNULL, pass_fds=locks)
    with contextlib.suppress(OSError):
        Path(f"/proc/{program.pid}/oom_score_adj").write_text(FIRST_TO_GO)
    return program


def watch(program: "subprocess.Popen[bytes]", lifeline: Lifeline, grace: float) -> None:
    """Wait for the program's end, and bring it about when the lifeline does not hold."""
    while program.poll() is None:
        if not lifeline.holds(TURN):
            os.killpg(0, signal.SIGTERM)
            try:
                program.wait(grace)
            except subprocess.TimeoutExpired:
                program.kill()


def kill_escaped(cookie: str) -> None:
    """Kill what left the process group but still carries the attempt's cookie."""
    for pid in carriers(cookie):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def carriers(cookie: str) -> Iterator[int]:
    """Yield the other processes whose environment holds the cookie, where the kernel shows it."""
    mark = f"{COOKIE}={cookie}".encode()
    for folder in Path("/proc").glob("[0-9]*") if cookie else ():
        try:
            found = mark in (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if found and int(folder.name) not in (os.getpid(), os.getppid()):
            yield int(folder.name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), sys.argv[4:]))
