"""The run folder on this host: which attempt it is of, and whether the next one may go on from it.

Each host has its own ``runs/<job>``. A job that ran on A, then on B, and is back on A finds A's old folder there: its
checkpoint is older than B's, its result is another attempt's. So each folder says whose it is.
"""

import time
from pathlib import Path

from jobs.models import Attempt, Event, Host
from jobs.services.hosts import home_id
from trainers.paths import resolve_path

OWNER = "attempt"  # the file that holds the attempt's number


def prepare_folder(attempt: Attempt) -> Path:
    """Return the run folder, marked as this attempt's; one that it must not go on from is set aside."""
    folder = resolve_path(attempt.job.run_dir)
    if folder.exists() and not may_go_on(attempt, folder):
        set_aside(folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / "result.json").unlink(missing_ok=True)
    (folder / OWNER).write_text(str(attempt.number))
    return folder


def may_go_on(attempt: Attempt, folder: Path) -> bool:
    """Tell whether the folder holds the job's newest checkpoint, or at least nothing that is out of date.

    The first attempt takes nothing: a job of the same number in an earlier database may have left the folder. A known
    checkpoint lies here, else starting the attempt would have forgotten it. Without one, every attempt since the
    folder's own has to have run here.
    """
    if attempt.number == 1:
        return False
    if attempt.job.checkpoint_step is not None:
        return True
    since = attempt.job.attempts.filter(number__gt=owner_of(folder), number__lt=attempt.number)
    here = Host.objects.filter(home=home_id()).values("name")
    return not since.exclude(worker__host__in=here).exists()


def owner_of(folder: Path) -> int:
    """Return the number of the attempt that a run folder, or weights that were fetched, are of; 0 if nobody knows."""
    try:
        return int((folder / OWNER).read_text())
    except (OSError, ValueError):
        return 0


def set_aside(folder: Path) -> None:
    """Rename a folder out of the way."""
    folder.rename(folder.with_name(f"{folder.name}.before-{time.time_ns() // 1_000_000}"))


def tell_start_over(attempt: Attempt, folder: Path) -> None:
    """Say in the log that the attempt does not go on from the job's checkpoint, if so, and why."""
    for told in attempt.job.events.filter(kind=Event.Kind.STARTED_OVER, created_at__gte=attempt.started_at):
        add_line(folder, f"starts over: {told.detail}")


def add_line(folder: Path, line: str) -> None:
    """Add a line of the worker's own to the log, while no trainer writes there."""
    with (folder / "log.txt").open("a") as log:
        log.write(f"[{line}]\n")
