"""The janitor's turn: end what its worker left behind, and wake workers that could work."""

import logging
import time
from datetime import timedelta

from django.conf import settings
from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, transaction
from django.utils import timezone

from jobs.models import Attempt, Job, Worker
from jobs.services.closing import yield_closed
from jobs.services.placement import plan
from jobs.services.schedule import queue_state
from jobs.services.wake import idle_workers, publish
from jobs.storage import WebAway
from jobs.worker.adopt import settle
from jobs.worker.outcome import Ending
from jobs.worker.patience import GaveUp
from jobs.worker.supervise import record_end

PAUSE = 3.0  # seconds between two turns after which workers, too, may have been unable to renew their leases

logger = logging.getLogger(__name__)


class Sweeper:
    """Reap expired leases, after one lease of watching: when a database returns, every lease looks expired."""

    def __init__(self) -> None:
        self.watch_anew()

    def watch_anew(self) -> None:
        """Wait one lease before reaping again."""
        self._steady, self._wall = time.monotonic(), time.time()
        self._reap_after = self._steady + settings.NIGHTSHIFT_LEASE

    def turn(self) -> None:
        """Do one round. Raises DatabaseError; the caller then watches anew."""
        with transaction.atomic():
            pass  # waits as long as a worker would have to wait for its turn to write
        self._notice_pause()
        if time.monotonic() >= self._reap_after:
            reap_expired()
        yield_closed(timezone.now())
        wake_for_work()

    def _notice_pause(self) -> None:
        steady, wall = time.monotonic() - self._steady, time.time() - self._wall
        if steady > PAUSE or abs(wall - steady) > PAUSE:
            logger.warning("the database, the machine or its clock paused; leases are left alone for one lease")
            self.watch_anew()
        self._steady, self._wall = time.monotonic(), time.time()


def reap_expired() -> int:
    """Settle every attempt whose lease expired; return how many."""
    expired = Job.objects.filter(status=Job.Status.RUNNING, lease_until__lt=timezone.now())
    attempts = [attempt for job in expired if (attempt := take_over(job)) is not None]
    for attempt in attempts:
        _settle(attempt, cause=f"worker {attempt.worker or ''} was gone for longer than the lease")
    return len(attempts)


def reap_left_behind(worker: Worker) -> None:
    """Settle what an earlier process of this worker left running.

    Only for the worker itself, when it runs nothing and its device's lock is free: no lease has to be waited for then,
    and the job is back before a younger one can take its place.
    """
    for job in Job.objects.filter(status=Job.Status.RUNNING, worker=worker):
        if (attempt := take_over(job, left_behind=True)) is not None:
            _settle(attempt, cause=f"a process of worker {worker} ended without a word")


def _settle(attempt: Attempt, *, cause: str) -> None:
    """Settle an attempt; one whose remains are of no use goes back to the queue, and no other waits for it."""
    try:
        settle(attempt, cause=cause)
    except (GaveUp, WebAway) as error:  # its new lease expires, and it is tried again
        logger.warning("attempt %s cannot be settled now: %s", attempt, error)
    except Exception as error:
        if isinstance(error, DatabaseError | InterfaceError) and not isinstance(error, DataError | IntegrityError):
            raise
        logger.exception("what attempt %s left cannot be used", attempt)
        unusable = f"{cause}; what it left cannot be used: {type(error).__name__}"
        record_end(attempt, Ending(outcome=Attempt.Outcome.LOST, cause=unusable, again=True))


@transaction.atomic
def take_over(job: Job, *, left_behind: bool = False) -> Attempt | None:
    """Move a lease that expired, or was left behind, to this process under a new token; ``None`` if another did."""
    now, token = timezone.now(), Job.new_token()
    seen = Job.objects.filter(pk=job.pk, status=Job.Status.RUNNING, lease_token=job.lease_token)
    if not left_behind:
        seen = seen.filter(lease_until__lt=now)
    if not seen.update(lease_token=token, lease_until=now + timedelta(seconds=settings.NIGHTSHIFT_LEASE)):
        return None
    taken = Attempt.objects.filter(job=job, outcome=Attempt.Outcome.RUNNING)
    taken.filter(ended_at=None).update(ended_at=min(now, job.lease_until or now))  # no trainer outlives its lease
    taken.update(token=token)
    return Attempt.objects.select_related("job", "worker").get(token=token)


def wake_for_work() -> None:
    """Wake each idle worker that could claim something."""
    idle = {worker.device_id: worker.queue for worker in idle_workers()}
    if idle and Job.objects.filter(status=Job.Status.QUEUED).exists():
        starts = plan(queue_state(timezone.now()), starts_only=True).starts
        publish(*{idle[device] for devices in starts.values() for device in devices if device in idle})
