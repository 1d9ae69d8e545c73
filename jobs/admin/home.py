"""The first page: what runs, what waits, what ended last, and who works."""

from typing import Any

from django.contrib import admin
from django.db.models import Case, When
from django.http import HttpRequest
from django.utils import timezone

from jobs.admin.permissions import may_see, may_submit
from jobs.models import Job, Worker
from jobs.services.placement import plan
from jobs.services.reasons import waiting_reasons
from jobs.services.schedule import queue_state
from jobs.services.wake import alive_workers

SHOWN = 10

admin.site.index_template = "jobs/home.html"


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Add what the first page shows; unfold calls this."""
    if not may_see(request.user):
        return context
    jobs = Job.objects.select_related("owner", "worker__device")
    made = plan(queue_state(timezone.now()))
    place = Case(*[When(pk=pk, then=n) for pk, n in list(made.positions.items())[:SHOWN]], default=SHOWN + 1)
    waiting = list(jobs.filter(status__in=Job.WAITING).order_by(place, "id")[:SHOWN])
    reasons = waiting_reasons(waiting, made)
    alive = set(alive_workers().values_list("pk", flat=True))
    return context | {
        "title": "",
        "running": jobs.filter(status=Job.Status.RUNNING).order_by("started_at"),
        "waiting": [(job, reasons.get(job.pk, "")) for job in waiting],
        "waiting_count": Job.objects.filter(status__in=Job.WAITING).count(),
        "finished": jobs.filter(status__in=Job.FINISHED).order_by("-finished_at", "-id")[:SHOWN],
        "workers": Worker.objects.filter(pk__in=alive).select_related("device"),
        "may_see": True,
        "may_submit": may_submit(request.user),
    }
