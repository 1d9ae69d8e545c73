"""Take the best job that a worker can serve."""

from django.utils import timezone

from jobs.models import Attempt, Worker
from jobs.services.lifecycle import start_attempt
from jobs.services.schedule import eligible_jobs, served_by

CANDIDATES = 10  # rows looked at in one turn; more only matters when as many workers claim at the same moment


def claim_next(worker: Worker) -> Attempt | None:
    """Start an attempt of the first eligible job that ``worker`` serves; ``None`` when there is none."""
    while candidates := list(eligible_jobs(timezone.now()).filter(served_by(worker.device))[:CANDIDATES]):
        for job in candidates:
            if (attempt := start_attempt(job, worker)) is not None:
                return attempt
    return None
