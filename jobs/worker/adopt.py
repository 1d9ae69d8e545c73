"""What becomes of an attempt whose worker is gone: a finished result is adopted, anything else goes back.

Who adopts: the worker itself when it is started again, before it claims anything (``sweep.reap_left_behind``); else,
once the lease has expired, a janitor. Either believes only a run folder that is marked as this very attempt's
(``run_folder``), so that a janitor of another host takes neither the lack of a folder nor an older one there for the
attempt's end. What it cannot see it puts back in the queue. If the next attempt comes to the host where the lost one
had finished, it trains nothing and brings that result (``run_folder.is_finished``); on another host the job runs again,
and what the lost one did is lost work, but nothing is recorded twice.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from jobs.models import Attempt
from jobs.storage import WebStorage, storage_for
from jobs.worker.artifacts import upload
from jobs.worker.link import Link
from jobs.worker.outcome import Ending, completed
from jobs.worker.run_folder import finished_result, owner_of
from jobs.worker.ship import Shipper
from jobs.worker.supervise import record_end, ship_rest
from jobs.worker.time_limit import TimeLimit
from trainers.paths import resolve_path


def settle(attempt: Attempt, *, cause: str) -> None:
    """Record the end of an attempt that this process took over; ``cause`` says how its worker was lost.

    Raises:
        DatabaseError: the database is away; the attempt can be taken over again once its new lease has expired.
        GaveUp, WebRefused: likewise, the web does not take the results.
    """
    folder = resolve_path(attempt.job.run_dir)
    if is_of(attempt, folder):
        shipper = Shipper(attempt, folder, only_new=False)
        ship_rest(shipper, write=lambda ship: ship())
        if (result := finished_result(folder)) is not None:
            with renewed(attempt, shipper) as fenced:
                rows = upload(attempt, folder, stopped=fenced)
            return record_end(attempt, completed(result), folder=folder, rows=rows)
    if attempt.job.cancel_requested_at is not None:
        return record_end(attempt, Ending(outcome=Attempt.Outcome.CANCELLED, cause="its worker was gone"))
    return record_end(attempt, Ending(outcome=Attempt.Outcome.LOST, cause=cause, again=True))


def is_of(attempt: Attempt, folder: Path) -> bool:
    """Tell whether the run folder on this host is what this very attempt left."""
    return owner_of(folder) == attempt.number


@contextmanager
def renewed(attempt: Attempt, shipper: Shipper) -> Iterator[Callable[[], bool]]:
    """Keep the lease while files travel to the web; yield what tells whether it was lost all the same."""
    if not isinstance(storage_for(attempt), WebStorage):
        yield lambda: False
        return
    link = Link(attempt, shipper, TimeLimit(attempt))
    link.start()
    try:
        yield link.fenced.is_set
    finally:
        link.close()
