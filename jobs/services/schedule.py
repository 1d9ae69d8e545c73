"""The state of the queue in the database: which jobs may start now, and which devices there are."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet

from jobs.models import Device, Host, Job, Window
from jobs.services.disk import expected_bytes
from jobs.services.estimate import expected_seconds, remaining_seconds
from jobs.services.fair_share import device_time
from jobs.services.limits import running_limits
from jobs.services.placement import Ask, Slot, State
from jobs.services.wake import alive_workers
from jobs.services.windows import is_open

DEPENDENCY_MET = (
    Q(depends_on=None)
    | Q(depends_on__status=Job.Status.COMPLETED)
    | Q(depends_on__status__in=Job.FINISHED, dependency_rule=Job.DependencyRule.ANY_END)
)
# What of a job, and of the parent whose weights it starts from, decides when and where it runs, and what it writes.
# fmt: off
PLACED_BY = (
    "pk", "owner_id", "queued_at", "created_at", "priority", "place", "device_request", "device_id", "device_label",
    "device_count", "start_from", "training_type", "params", "total_steps", "checkpoint_step", "checkpoint_host",
    "cost_key", "pace_key", "time_limit", "disk_bytes",
)
# fmt: on


def is_met(job: Job) -> bool:
    """Tell whether no dependency keeps a job, as ``DEPENDENCY_MET`` has it."""
    if job.depends_on is None or job.depends_on.status == Job.Status.COMPLETED:
        return True
    return job.depends_on.status in Job.FINISHED and job.dependency_rule == Job.DependencyRule.ANY_END


def eligible_jobs(now: datetime) -> QuerySet[Job]:
    """Return the queued jobs that neither a dependency nor the time keeps from starting at ``now``."""
    due = Q(not_before=None) | Q(not_before__lte=now)
    inside = Q(window=None) | Q(window__in=[window.pk for window in Window.objects.all() if is_open(window, now)])
    return Job.objects.filter(DEPENDENCY_MET, due, inside, status=Job.Status.QUEUED, cancel_requested_at=None)


def queue_state(now: datetime) -> State:
    """Return the queue as ``placement.plan`` needs it, in a constant number of queries."""
    hosts = {host.name: host for host in Host.objects.all()}
    running = list(Job.objects.filter(status=Job.Status.RUNNING).only("owner_id"))
    remaining = remaining_seconds(running, now)
    return State(
        now=now,
        asks=asks(placeable(eligible_jobs(now)), hosts),
        slots=slots(now, hosts, remaining),
        used=device_time(now, remaining),
        running=Counter(job.owner_id for job in running),
        limits=running_limits(),
        patience=settings.NIGHTSHIFT_GANG_PATIENCE,
    )


def with_what_counts(jobs: QuerySet[Job]) -> list[Job]:
    """Return waiting jobs without what nobody needs to place them."""
    return list(jobs.select_related("depends_on").defer("command", "result", "last_values"))


def placeable(jobs: QuerySet[Job]) -> list[Any]:
    """Return what ``asks`` reads of waiting jobs: of ten thousand, plain rows take a third of the time of objects."""
    rows = list(jobs.values_list(*PLACED_BY, named=True))
    starting_from = {row.pk for row in rows if row.start_from == Job.StartFrom.JOB}  # the size counts that its job has
    objects = with_what_counts(jobs.filter(start_from=Job.StartFrom.JOB)) if starting_from else []
    return [*(row for row in rows if row.pk not in starting_from), *objects]


def asks(jobs: list[Any], hosts: dict[str, Host]) -> list[Ask]:
    """Return what waiting jobs ask for; ``jobs`` are such, or rows of ``PLACED_BY``."""
    seconds, patience = expected_seconds(jobs), timedelta(seconds=settings.NIGHTSHIFT_CHECKPOINT_PATIENCE)
    return [
        Ask(
            job=job.pk,
            owner=job.owner_id,
            queued_at=job.queued_at or job.created_at,
            priority=job.priority,
            place=job.place,
            request=job.device_request,
            device=job.device_id,
            label=job.device_label,
            count=job.device_count,
            seconds=seconds.get(job.pk),
            disk=expected_bytes(job),
            homes=_homes(job, hosts),
            prefers_homes_until=(job.queued_at or job.created_at) + patience if job.checkpoint_host else None,
        )
        for job in jobs
    ]


def slots(now: datetime, hosts: dict[str, Host], remaining: dict[int, float | None]) -> list[Slot]:
    """Return the devices that living workers serve. ``remaining``: expected seconds of running jobs, by id."""
    devices = Device.objects.filter(workers__in=alive_workers()).select_related("attempt").distinct()
    return [_slot(device, hosts.get(device.host), now, remaining) for device in devices]


def _slot(device: Device, host: Host | None, now: datetime, remaining: dict[int, float | None]) -> Slot:
    left = remaining.get(device.attempt.job_id) if device.attempt else None
    because = f": {device.drain_reason}" if device.drain_reason else ""
    closed = f"{device} is drained{because}" if device.drained_at else ""
    if host and host.paused_reason:
        closed = f"{host} is paused: {host.paused_reason}"
    room = max(host.disk_free - settings.NIGHTSHIFT_DISK_RESERVE, 0) if host and host.disk_total else None
    return Slot(
        device=device.pk,
        host=device.host,
        kind=device.kind,
        labels=device.all_labels,
        busy=device.attempt is not None,
        free_at=None if left is None else now + timedelta(seconds=left),
        closed=closed,
        room=room,
    )


def _homes(job: Any, hosts: dict[str, Host]) -> frozenset[str]:
    """Return the hosts that see the job's checkpoint: where it was written, and those that share that state folder."""
    if not job.checkpoint_host:
        return frozenset()
    home = hosts[job.checkpoint_host].home if job.checkpoint_host in hosts else ""
    return frozenset([job.checkpoint_host, *(name for name, host in hosts.items() if home and host.home == home)])
