"""Take the best job that a worker can serve."""

from django.db import transaction
from django.utils import timezone

from jobs.models import Attempt, Device, Job, Worker
from jobs.services.attempts import start_attempt
from jobs.services.placement import plan
from jobs.services.schedule import queue_state


@transaction.atomic
def claim_next(worker: Worker) -> Attempt | None:
    """Start an attempt of the first job that the plan puts on ``worker``'s device; ``None`` when there is none.

    Claims take turns, so that limits and devices are counted right: SQLite gives a transaction the whole database, and
    PostgreSQL holds the others at the devices' rows. The keys stay free: a submission that names a device, and holds
    its parent's row, need not wait for a claim that waits for that row.
    """
    list(Device.objects.select_for_update(no_key=True).order_by("pk").values_list("pk"))
    starts = plan(queue_state(timezone.now()), prefer=worker.device_id, starts_only=True).starts
    for number, devices in starts.items():
        if worker.device_id in devices:
            return start_attempt(Job.objects.get(pk=number), worker, devices=devices)
    return None
