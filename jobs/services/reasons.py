"""Why each waiting job waits, in words a person understands, in a constant number of queries."""

from collections.abc import Iterable
from datetime import datetime

from django.utils import formats, timezone
from django.utils.translation import gettext as _

from jobs.models import Device, Job
from jobs.services.schedule import eligible_jobs
from jobs.services.wake import alive_workers


def waiting_reasons(jobs: Iterable[Job]) -> dict[int, str]:
    """Return the reason of every held or queued job among ``jobs``, by job id."""
    waiting = [job for job in jobs if job.status in Job.WAITING]
    if not waiting:
        return {}
    now = timezone.now()
    parents = _statuses(job.depends_on_id for job in waiting)
    named = Device.objects.in_bulk({job.device_id for job in waiting if job.device_id})
    devices = list(Device.objects.filter(workers__in=alive_workers()).distinct())
    positions = {pk: n for n, pk in enumerate(eligible_jobs(now).values_list("pk", flat=True), start=1)}
    return {
        job.pk: _held(job) or _dependency(job, parents) or _time(job, now) or _device(job, devices, named)
        or _("position %(n)d in the queue") % {"n": positions.get(job.pk, 1)}
        for job in waiting
    }  # fmt: skip


def _statuses(ids: Iterable[int | None]) -> dict[int, str]:
    return dict(Job.objects.filter(pk__in={pk for pk in ids if pk}).values_list("pk", "status"))


def _held(job: Job) -> str:
    return _("held") if job.status == Job.Status.HELD else ""


def _dependency(job: Job, parents: dict[int, str]) -> str:
    if job.depends_on_id is None:
        return ""
    status = parents[job.depends_on_id]
    if status not in Job.FINISHED:
        return _("waiting for job %(id)d") % {"id": job.depends_on_id}
    if status == Job.Status.COMPLETED or job.dependency_rule == Job.DependencyRule.ANY_END:
        return ""
    if status == Job.Status.CANCELLED:
        return _("job %(id)d was cancelled") % {"id": job.depends_on_id}
    return _("job %(id)d failed") % {"id": job.depends_on_id}


def _time(job: Job, now: datetime) -> str:
    if job.not_before is None or job.not_before <= now:
        return ""
    then, today = timezone.localtime(job.not_before), timezone.localtime(now).date()
    pattern = "H:i" if then.date() == today else "Y-m-d H:i"
    return _("not before %(time)s") % {"time": formats.date_format(then, pattern)}


def _device(job: Job, devices: list[Device], named: dict[int, Device]) -> str:
    if not devices:
        return _("no worker is running")
    kinds = {device.kind for device in devices}
    if job.device_request == Job.DeviceRequest.GPU and Device.Kind.GPU not in kinds:
        return _("no worker serves a GPU")
    if job.device_request == Job.DeviceRequest.CPU and Device.Kind.CPU not in kinds:
        return _("no worker serves the CPU")
    if job.device_id is not None and job.device_id not in {device.pk for device in devices}:
        return _("named device %(name)s has no worker") % {"name": named[job.device_id]}
    return ""
