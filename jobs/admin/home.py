"""The first page: what each device does and does next, what waits and until when, what ended last."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.db.models import Case, Q, QuerySet, When
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString

from jobs.admin.device_state import device_label, device_note, device_place, devices_with_state, running_job
from jobs.admin.permissions import may_operate, may_see, may_submit
from jobs.models import Device, Host, Job
from jobs.services.forecast import expected_starts
from jobs.services.next_in_line import next_in_line
from jobs.services.placement import Plan, State, plan
from jobs.services.reasons import waiting_reasons
from jobs.services.schedule import queue_state

SHOWN = 10

admin.site.index_template = "jobs/home.html"


@dataclass(frozen=True, kw_only=True)
class DeviceRow:
    """One device as the first page shows it."""

    device: Device
    place: str
    state: SafeString
    note: str
    job: Job | None
    next_job: Job | None


@dataclass(frozen=True, kw_only=True)
class WaitingRow:
    """One waiting job as the first page shows it."""

    job: Job
    reason: str
    starts: datetime | None


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Add what the first page shows; unfold calls this."""
    if not may_see(request.user):
        return context
    state = queue_state(timezone.now())
    made = plan(state)
    devices = device_rows(next_in_line(state, made))
    return context | {
        "title": "",
        "devices": devices,
        "served": any(vars(row.device)["served"] for row in devices),
        "paused_hosts": Host.objects.exclude(paused_reason=""),
        "waiting": waiting_rows(state, made),
        "waiting_count": Job.objects.filter(status__in=Job.WAITING).count(),
        "finished": _jobs().filter(status__in=Job.FINISHED).order_by("-finished_at", "-id")[:SHOWN],
        "may_see": True,
        "may_submit": may_submit(request.user),
        "may_operate": may_operate(request.user),
    }


def device_rows(coming: dict[int, int]) -> list[DeviceRow]:
    """Return the devices that have a worker or miss one; ``coming`` names the next job of each, by device."""
    present = Q(served=True) | Q(expected=True) | ~Q(attempt=None) | ~Q(drained_at=None)
    jobs = _jobs().in_bulk(set(coming.values()))
    return [_device_row(device, jobs.get(coming.get(device.pk, 0))) for device in devices_with_state().filter(present)]


def _device_row(device: Device, next_job: Job | None) -> DeviceRow:
    return DeviceRow(
        device=device,
        place=" · ".join(filter(None, (device.host, device_place(device)))),
        state=device_label(device),
        note=device_note(device),
        job=running_job(device),
        next_job=next_job,
    )


def waiting_rows(state: State, made: Plan) -> list[WaitingRow]:
    """Return the first jobs of the queue in the plan's order, then those that something else keeps."""
    place = Case(*[When(pk=pk, then=n) for pk, n in list(made.positions.items())[:SHOWN]], default=SHOWN + 1)
    jobs = list(_jobs().filter(status__in=Job.WAITING).order_by(place, "id")[:SHOWN])
    reasons, starts = waiting_reasons(jobs, made), expected_starts(state)
    return [WaitingRow(job=job, reason=reasons.get(job.pk, ""), starts=starts.get(job.pk)) for job in jobs]


def _jobs() -> QuerySet[Job]:
    return Job.objects.select_related("owner", "worker__device")
