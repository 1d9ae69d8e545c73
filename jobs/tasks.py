"""What Celery runs: one task, which means no more than that there may be work."""

from typing import Any

from celery import shared_task

from jobs.models import Worker
from jobs.services.claim import claim_next
from jobs.services.sweep import reap_left_behind
from jobs.services.wake import RUN_NEXT
from jobs.worker.drain import is_draining
from jobs.worker.presence import connect_signals
from jobs.worker.process import comes_free, lock_of
from jobs.worker.supervise import run_attempt

connect_signals()


@shared_task(bind=True, name=RUN_NEXT)
def run_next(self: Any) -> None:
    """Run jobs until nothing is left that this worker serves, or it is told to stop."""
    name = self.request.hostname
    worker = Worker.objects.select_related("device").get(name=name)
    while not is_draining(name) and comes_free(lock_of(worker.device.key)):
        reap_left_behind(worker)
        if (attempt := claim_next(worker)) is None:
            return
        run_attempt(attempt, is_draining=lambda: is_draining(name))
