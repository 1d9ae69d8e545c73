"""Take a device out of the queue's hands, and give it back."""

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from jobs.models import Device, Event, Job
from jobs.services.events import record
from jobs.services.lifecycle import NotPossible, request_yield
from jobs.services.wake import wake_workers


def drain_device(device: Device, *, by: User | None, reason: str = "", now: bool = False) -> None:
    """Let nothing new start on the device; with ``now``, what runs there saves and goes back to the queue.

    Raises:
        NotPossible: the device is drained already, and ``now`` does not ask for more.
    """
    drained = {"drained_at": timezone.now(), "drained_by": by, "drain_reason": reason[:200]}
    with transaction.atomic():
        if Device.objects.filter(pk=device.pk, drained_at=None).update(**drained):
            record(None, Event.Kind.DEVICE_DRAINED, by=by, detail=_because(str(device), reason))
        elif not now:
            raise NotPossible(f"{device} is already drained")
    device.refresh_from_db()
    # In transactions of their own: a claim that held the device's row has ended by now, and an attempt that ends takes
    # its job's row before the device's.
    for job in Job.objects.filter(attempts__held_devices=device) if now else ():
        request_yield(job, _because(f"{device} was drained", reason), by=by)


@transaction.atomic
def resume_device(device: Device, *, by: User | None) -> None:
    """Let jobs start on the device again.

    Raises:
        NotPossible: the device is not drained.
    """
    given_back = {"drained_at": None, "drained_by": None, "drain_reason": ""}
    if not Device.objects.filter(pk=device.pk, drained_at__isnull=False).update(**given_back):
        raise NotPossible(f"{device} is not drained")
    record(None, Event.Kind.DEVICE_RESUMED, by=by, detail=str(device))
    transaction.on_commit(wake_workers)
    device.refresh_from_db()


def _because(what: str, reason: str) -> str:
    return f"{what}: {reason}" if reason else what
