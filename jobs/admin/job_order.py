"""The queue in the order in which jobs start, and the buttons with which an operator changes it."""

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from jobs.admin.permissions import may_operate, require_operator, require_viewer
from jobs.models import Job
from jobs.services.forecast import expected_starts
from jobs.services.lifecycle import NotPossible
from jobs.services.order import give_back_place, move, queue_order, run_next
from jobs.services.placement import plan
from jobs.services.reasons import waiting_reasons
from jobs.services.schedule import queue_state

SHOWN = 200


def show_queue(request: HttpRequest) -> HttpResponse:
    """Show the waiting jobs, next first, each with its reason and expected start."""
    require_viewer(request)
    state = queue_state(timezone.now())
    made = plan(state)
    waiting = Job.objects.filter(status__in=Job.WAITING)
    order = dict.fromkeys([*queue_order(made), *waiting.order_by("pk").values_list("pk", flat=True)])
    found = waiting.select_related("owner", "window").defer("params", "command").in_bulk(list(order)[:SHOWN])
    jobs = [found[pk] for pk in order if pk in found]
    reasons, starts = waiting_reasons(jobs, made), expected_starts(state)
    rows = [
        {"job": job, "position": made.positions.get(job.pk), "reason": reasons[job.pk], "starts": starts.get(job.pk)}
        for job in jobs
    ]
    context = {"opts": Job._meta, "title": _("Queue"), "rows": rows, "more": max(0, len(order) - SHOWN)}
    return _page(request, "jobs/queue.html", may_operate=may_operate(request.user), **context)


@require_POST
def put(request: HttpRequest, job: Job) -> HttpResponse:
    """Move a job: ``to`` is ``next``, ``up``, ``down`` or ``rules``."""
    require_operator(request)
    try:
        _put(request, job, request.POST.get("to", ""))
    except NotPossible as refused:
        messages.warning(request, f"{refused}.".capitalize())
    back = "jobs_job_queue" if request.POST.get("back") == "queue" else "jobs_job_change"
    return HttpResponseRedirect(reverse(f"admin:{back}", args=[] if back == "jobs_job_queue" else [job.pk]))


def _put(request: HttpRequest, job: Job, to: str) -> None:
    person: Any = request.user
    if to == "next":
        run_next(job, by=person)
    elif to == "rules":
        give_back_place(job, by=person)
    elif to in ("up", "down"):
        order = queue_order(plan(queue_state(timezone.now())))
        here = order.index(job.pk) + 1 if job.pk in order else len(order) + 1
        move(job, max(1, here - 1) if to == "up" else here + 1, by=person)


def _page(request: HttpRequest, template: str, **context: Any) -> HttpResponse:
    return TemplateResponse(request, template, {**admin.site.each_context(request), **context})
