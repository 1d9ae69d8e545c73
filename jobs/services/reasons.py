"""Why each waiting job waits, in words a person understands, in a constant number of queries."""

from collections.abc import Iterable
from datetime import datetime

from django.utils import formats, timezone
from django.utils.translation import gettext as _

from jobs.models import Device, Host, Job, Window
from jobs.services.disk import disk_reason
from jobs.services.placement import Plan, Standing, Why, plan
from jobs.services.schedule import queue_state
from jobs.services.windows import is_open, next_opening, zone_of


def waiting_reasons(jobs: Iterable[Job], made: Plan | None = None) -> dict[int, str]:
    """Return the reason of every held or queued job among ``jobs``, by job id; ``made`` is the plan, where known."""
    waiting = [job for job in jobs if job.status in Job.WAITING]
    if not waiting:
        return {}
    now = timezone.now()
    parents = _statuses(job.depends_on_id for job in waiting)
    windows = Window.objects.in_bulk({job.window_id for job in waiting if job.window_id})
    named = Device.objects.in_bulk({job.device_id for job in waiting if job.device_id})
    made = made or plan(queue_state(now))
    full = {standing.detail for standing in made.standings.values() if standing.why is Why.DISK}
    hosts = {host.name: host for host in Host.objects.filter(name__in=full)} if full else {}
    return {
        job.pk: _held(job) or _dependency(job, parents) or _time(job, now) or _window(job, windows, now)
        or _standing(job, made, named, hosts)
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
    return _("not before %(time)s") % {"time": _moment(job.not_before, now)}


def _window(job: Job, windows: dict[int, Window], now: datetime) -> str:
    if job.window_id is None or is_open(window := windows[job.window_id], now):
        return ""
    if zone_of(window) is None:
        return _("window %(name)s has the time zone %(zone)s, which is not known here") % {
            "name": window,
            "zone": window.time_zone,
        }
    if (opening := next_opening(window, now)) is None:
        return _("window %(name)s never opens") % {"name": window}
    return _("window %(name)s opens %(time)s") % {"name": window, "time": _moment(opening, now)}


def _standing(job: Job, made: Plan, named: dict[int, Device], hosts: dict[str, Host]) -> str:
    standing = made.standings.get(job.pk, Standing(Why.TURN))
    match standing.why:
        case Why.LIMIT:
            return _("%(person)s's limit of %(n)s running jobs") % {"person": job.owner, "n": standing.detail}
        case Why.NO_DEVICE:
            return _no_device(job, named)
        case Why.CLOSED:
            return standing.detail
        case Why.DISK:
            return _disk(job, hosts.get(standing.detail))
        case Why.HOME:
            return _("waiting for %(host)s, which holds its checkpoint") % {"host": standing.detail}
    return _("position %(n)d in the queue") % {"n": made.positions.get(job.pk, 1)}


def _disk(job: Job, host: Host | None) -> str:
    if host is None:
        return _("too little room on the disk")
    free, needed, reserve = disk_reason(host, job)
    told = {"host": host, "free": free, "needed": needed, "reserve": reserve}
    return _("host %(host)s has %(free)s free, this job needs about %(needed)s and %(reserve)s stay free") % told


def _no_device(job: Job, named: dict[int, Device]) -> str:
    if job.device_id is not None:
        return _("named device %(name)s has no worker") % {"name": named[job.device_id]}
    if job.device_count > 1:
        return _("no host has %(n)d such devices with a worker") % {"n": job.device_count}
    match job.device_request:
        case Job.DeviceRequest.GPU:
            return _("no worker serves a GPU")
        case Job.DeviceRequest.CPU:
            return _("no worker serves the CPU")
        case Job.DeviceRequest.LABEL:
            return _("no worker serves a device labelled %(label)s") % {"label": job.device_label}
    return _("no worker is running")


def _moment(moment: datetime, now: datetime) -> str:
    then, today = timezone.localtime(moment), timezone.localtime(now).date()
    return formats.date_format(then, "H:i" if then.date() == today else "Y-m-d H:i")
