"""What becomes of an attempt whose worker is gone: a finished result is adopted, anything else goes back."""

from pathlib import Path
from typing import Any

from jobs.models import Attempt
from jobs.worker.artifacts import upload
from jobs.worker.outcome import DONE, Ending, completed, read_result
from jobs.worker.ship import Shipper
from jobs.worker.supervise import record_end, ship_rest
from trainers.paths import resolve_path


def settle(attempt: Attempt, *, cause: str) -> None:
    """Record the end of an attempt that this process took over; ``cause`` says how its worker was lost.

    Raises:
        DatabaseError: the database is away; the attempt can be taken over again once its new lease has expired.
    """
    folder = resolve_path(attempt.job.run_dir)
    if folder.exists():
        ship_rest(Shipper(attempt, folder, only_new=False), write=lambda ship: ship())
    if (result := finished_result(attempt, folder)) is not None:
        record_end(attempt, completed(result), folder=folder, rows=upload(attempt.job, folder))
    elif attempt.job.cancel_requested_at is not None:
        record_end(attempt, Ending(outcome=Attempt.Outcome.CANCELLED, cause="its worker was gone"))
    else:
        record_end(attempt, Ending(outcome=Attempt.Outcome.LOST, cause=cause, again=True))


def finished_result(attempt: Attempt, folder: Path) -> dict[str, Any] | None:
    """Return the success that this very attempt wrote: its worker removed any older one before it started."""
    result = read_result(folder)
    if result is None or result.get("exit_code") != DONE:
        return None
    written = (folder / "result.json").stat().st_mtime
    return result if written >= attempt.started_at.timestamp() else None
