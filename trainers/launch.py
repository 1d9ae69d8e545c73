"""Several processes that train together on this machine, ended as one. Imports no torch.

    python -m trainers sft --processes 2 --run_dir runs/1 --from_weight none

As ``torchrun --nproc_per_node 2 -m trainers sft ...``, but without its banner, and the exit code tells how the run
ended; no process leaves this one's group, so that whoever kills the group leaves none behind.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

GRACE_S = 30.0  # for those that are left once one has failed: to notice, and to write why
POLL_S = 0.05
Processes = list[subprocess.Popen[bytes]]


def run_processes(argv: Sequence[str], count: int) -> int:
    """Run ``python -m trainers`` with ``argv`` in ``count`` processes, and return how they ended together.

    A process that was killed by a signal counts first, as minus its number; then the exit code of the main one.
    """
    with tempfile.TemporaryDirectory(prefix="nightshift-") as folder:
        processes = [
            subprocess.Popen([sys.executable, "-m", "trainers", *argv], env=environment(rank, count, Path(folder)))
            for rank in range(count)
        ]
        try:
            with forwarding_stop_to(processes):
                return joint_ending(wait_for(processes))
        finally:
            for process in processes:
                process.kill()
                process.wait()


def environment(rank: int, count: int, folder: Path) -> dict[str, str]:
    """Return the environment of one process: torchrun's variables, and the cores shared between all of them."""
    cores = max((os.cpu_count() or 1) // count, 1)
    return {
        "OMP_NUM_THREADS": str(cores),
        **os.environ,
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(count),
        "NIGHTSHIFT_MEETING_POINT": f"file://{folder}/meeting",
    }


def wait_for(processes: Processes) -> list[int | None]:
    """Return how each ended by itself; once one has failed the rest have ``GRACE_S``, and are killed after that."""
    until: float | None = None
    while None in (codes := [process.poll() for process in processes]):
        if until is None and any(codes):
            until = time.monotonic() + GRACE_S
        if until is not None and time.monotonic() > until:
            break
        time.sleep(POLL_S)
    return codes


def joint_ending(codes: Sequence[int | None]) -> int:
    """Return the exit code of all: a death by signal, else the main one's failure, else the first other failure."""
    ended = [code for code in codes if code]
    return next((code for code in ended if code < 0), ended[0] if ended else 0)


def end_as(code: int) -> int:
    """Return ``code`` for the program to exit with; minus a signal's number ends it by that signal."""
    if code < 0:
        with suppress(OSError):  # SIGKILL takes no handler
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


@contextmanager
def forwarding_stop_to(processes: Processes) -> Iterator[None]:
    """Ask every process to stop when this one is; a Ctrl-C reaches them anyhow, and a second SIGTERM does no harm."""

    def forward(number: int, frame: FrameType | None) -> None:
        for process in processes:
            process.terminate()

    previous = {number: signal.signal(number, forward) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
