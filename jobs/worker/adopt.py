"""What becomes of an attempt whose worker is gone: a finished result is adopted, anything else goes back."""

from pathlib import Path

from jobs.models import Attempt
from jobs.worker.artifacts import upload
from jobs.worker.outcome import DONE, Ending, read_result
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
    if is_done(attempt, folder):
        ending = Ending(outcome=Attempt.Outcome.COMPLETED, exit_code=DONE)
        record_end(attempt, ending, folder=folder, rows=upload(attempt.job, folder))
    elif attempt.job.cancel_requested_at is not None:
        record_end(attempt, Ending(outcome=Attempt.Outcome.CANCELLED, cause="its worker was gone"))
    else:
        record_end(attempt, Ending(outcome=Attempt.Outcome.LOST, cause=cause, again=True))


def is_done(attempt: Attempt, folder: Path) -> bool:
    """Tell whether this very attempt wrote a successful result: its worker removed any older one before it started."""
    result = read_result(folder)
    written = (folder / "result.json").stat().st_mtime if result else 0.0
    return result is not None and result.get("exit_code") == DONE and written >= attempt.started_at.timestamp()
