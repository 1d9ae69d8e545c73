"""Which jobs may start now, in which order, and on which device."""

from datetime import datetime

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from jobs.models import Device, Job

DEPENDENCY_MET = (
    Q(depends_on=None)
    | Q(depends_on__status=Job.Status.COMPLETED)
    | Q(depends_on__status__in=Job.FINISHED, dependency_rule=Job.DependencyRule.ANY_END)
)


def eligible_jobs(now: datetime) -> QuerySet[Job]:
    """Return the queued jobs that may start at ``now``: by priority, then whose owner runs least, then age."""
    due = Q(not_before=None) | Q(not_before__lte=now)
    return in_order(Job.objects.filter(DEPENDENCY_MET, due, status=Job.Status.QUEUED, cancel_requested_at=None))


def in_order(jobs: QuerySet[Job]) -> QuerySet[Job]:
    """Sort jobs as workers take them."""
    running = (
        Job.objects.filter(owner=OuterRef("owner"), status=Job.Status.RUNNING)
        .order_by()
        .values("owner")
        .annotate(count=Count("pk"))
        .values("count")
    )
    return jobs.annotate(owner_running=Coalesce(Subquery(running), 0)).order_by("-priority", "owner_running", "id")


def served_by(device: Device) -> Q:
    """Return the condition that a job's device request is one that ``device`` serves."""
    kind = Job.DeviceRequest.GPU if device.kind == Device.Kind.GPU else Job.DeviceRequest.CPU
    return Q(device_request__in=(Job.DeviceRequest.ANY, kind)) | Q(
        device_request=Job.DeviceRequest.NAMED, device=device
    )
