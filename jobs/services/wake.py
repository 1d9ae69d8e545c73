"""Tell idle workers that there may be work. A lost message costs a janitor's turn, never a job."""

import logging
from datetime import timedelta

from celery import current_app
from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from jobs.models import Job, Worker

RUN_NEXT = "jobs.run_next"
MESSAGE_LIFE = 30  # seconds; by then the janitor has sent another
AT_ONCE = {"max_retries": 1, "interval_start": 0, "interval_step": 0, "interval_max": 0}

logger = logging.getLogger(__name__)


def alive_workers() -> QuerySet[Worker]:
    """Return the workers that were heard of within a lease and have not stopped."""
    since = timezone.now() - timedelta(seconds=settings.NIGHTSHIFT_LEASE)
    return Worker.objects.filter(stopped_at=None, heartbeat_at__gte=since)


def idle_workers() -> QuerySet[Worker]:
    """Return the alive workers that run nothing and whose device no other has."""
    running = Job.objects.filter(worker=OuterRef("pk"), status=Job.Status.RUNNING)
    return alive_workers().filter(~Exists(running), device__attempt=None)


def wake_workers(*, besides: int = 0) -> None:
    """Publish ``run_next`` to every idle worker, ``besides`` one that is looking for work anyway."""
    publish(*idle_workers().exclude(pk=besides).values_list("queue", flat=True))


def publish(*queues: str) -> None:
    """Send one wake-up message to each queue, without waiting for a broker that is away."""
    if not queues:
        return
    try:
        with current_app.connection_for_write(transport_options=AT_ONCE) as connection:
            for queue in queues:
                current_app.send_task(RUN_NEXT, queue=queue, expires=MESSAGE_LIFE, retry=False, connection=connection)
    except Exception as error:  # every transport raises its own; the row waits for the janitor all the same
        logger.warning("no wake-up for %s: %s", ", ".join(queues), error)
