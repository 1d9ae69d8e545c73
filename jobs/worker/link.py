"""The thread between a running attempt and the database: heartbeat, write-back, and what people wish."""

import logging
import threading
import time
from collections.abc import Callable

from django.conf import settings
from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, close_old_connections, connection

from jobs.models import Attempt, Job, Worker
from jobs.services.attempts import Fenced
from jobs.worker.ship import Shipper
from jobs.worker.time_limit import TimeLimit

POLL = 0.4  # seconds between two looks at the job's row
WRITE = 1.0  # seconds between two writes
RETRY = 1.0  # seconds

logger = logging.getLogger(__name__)


class Link(threading.Thread):
    """Renew the lease and ship until closed. The database may be away for any time; the trainer does not notice."""

    def __init__(self, attempt: Attempt, shipper: Shipper, limit: TimeLimit) -> None:
        super().__init__(name="link", daemon=True)
        self.fenced = threading.Event()
        self.cancel_asked = threading.Event()
        self.yield_reason = ""
        self.pid = 0  # the guard's, once it runs
        self._attempt, self._shipper, self._limit = attempt, shipper, limit
        self._closing, self._confirmed = threading.Event(), threading.Event()
        self._alone = not Worker.objects.exclude(host=attempt.worker.host if attempt.worker else "").exists()
        self._written_at = 0.0

    def run(self) -> None:
        while not self._closing.wait(POLL) and not self.fenced.is_set():
            self._turn()
        connection.close()

    def close(self) -> None:
        """End the thread after its current turn."""
        self._closing.set()
        self.join()

    def may_train_on(self) -> bool:
        """Tell whether the guard may hear that all is well: with other hosts around, once per confirmed heartbeat."""
        confirmed = self._confirmed.is_set()
        self._confirmed.clear()
        return self.is_alive() and (self._alone or confirmed)

    def _turn(self) -> None:
        try:
            close_old_connections()
            self._write_when_due()
            self._look_for_wishes()
            self._limit.warn(self._shipper.folder / "log.txt")
        except Fenced:
            self.fenced.set()
        except (DataError, IntegrityError):
            logger.exception("attempt %s: rows that the database refuses are left out", self._attempt)
            self._shipper.give_up_load()
        except Exception as error:  # whatever it is, a thread that ends would end the training
            logger.warning("attempt %s: cannot write now, will try again: %r", self._attempt, error)

    def _write_when_due(self) -> None:
        silent = time.monotonic() - self._written_at
        if silent < min(WRITE, settings.NIGHTSHIFT_HEARTBEAT):
            return
        if silent >= settings.NIGHTSHIFT_HEARTBEAT or self._shipper.has_news():
            self._shipper.ship()
            self._written_at = time.monotonic()
            self._confirmed.set()

    def _look_for_wishes(self) -> None:
        held = Job.objects.filter(pk=self._attempt.job_id, lease_token=self._attempt.token)
        row = held.values_list("cancel_requested_at", "yield_reason", "time_limit").first()
        if row is None:
            raise Fenced(f"attempt {self._attempt} no longer holds the lease")
        cancelled_at, self.yield_reason, self._limit.minutes = row
        if cancelled_at is not None:
            self.cancel_asked.set()
        if self.pid:
            Attempt.objects.filter(pk=self._attempt.pk).update(pid=self.pid)
            self.pid = 0


def persist(write: Callable[[], object]) -> None:
    """Call ``write`` until the database takes it. What the database refuses for another reason rises."""
    while True:
        try:
            close_old_connections()
            write()
        except (DataError, IntegrityError):
            raise
        except (DatabaseError, InterfaceError) as error:
            logger.warning("cannot write now, will try again: %s", error)
            time.sleep(RETRY)
        else:
            return
