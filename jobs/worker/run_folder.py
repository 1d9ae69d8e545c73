"""The run folder on this host: which attempt it is of, and whether the next one may go on from it.

Each host has its own ``runs/<job>``. A job that ran on A, then on B, and is back on A finds A's old folder there: its
checkpoint is older than B's, its result is another attempt's. So each folder says whose it is.
"""

import time
from pathlib import Path
from typing import Any

from jobs.models import Attempt, Event, Host
from jobs.services.attempts import resumed
from jobs.services.hosts import home_id
from jobs.worker.outcome import DONE, read_result
from trainers.paths import resolve_path

OWNER = "attempt"  # the file that holds the attempt's number
UNRECORDED = (Attempt.Outcome.LOST, Attempt.Outcome.DRAINED)  # what an attempt is that may have come to its end unseen


def prepare_folder(attempt: Attempt) -> Path:
    """Return the run folder, marked as this attempt's; one that it must not go on from is set aside."""
    folder = resolve_path(attempt.job.run_dir)
    if folder.exists() and not may_go_on(attempt, folder):
        set_aside(folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_finished(attempt, folder):
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


def is_finished(attempt: Attempt, folder: Path) -> bool:
    """Tell whether an earlier attempt did all that this one shall, but was lost before that was recorded."""
    before = attempt.job.attempts.filter(number=owner_of(folder), outcome__in=UNRECORDED).first()
    same = before is not None and resumed(before.command) == resumed(attempt.command)
    return same and finished_result(folder) is not None and (folder / "model").is_dir()


def finished_result(folder: Path) -> dict[str, Any] | None:
    """Return the success that a run folder tells of; its attempt removed any older one before it marked the folder."""
    result = read_result(folder)
    return result if result is not None and result.get("exit_code") == DONE else None


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
