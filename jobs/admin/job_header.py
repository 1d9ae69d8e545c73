"""The head of a job's page: status, reason, progress, and what the reader may do."""

from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _

from jobs.admin.durations import running_time, short_duration, waiting_time
from jobs.admin.job_columns import STATUS_COLOURS
from jobs.admin.permissions import may_steer, may_submit
from jobs.models import Job
from jobs.services.reasons import waiting_reasons

RECENT = 20


def header_context(request: HttpRequest, job: Job) -> dict[str, Any]:
    """Return what ``job_header.html`` shows."""
    return {
        "job": job,
        "colour": STATUS_COLOURS[Job.Status(job.status)],
        "reason": waiting_reasons([job]).get(job.pk, job.cause),
        "time_left": time_left(job),
        "waited": waiting_time(job),
        "ran": running_time(job),
        "usable_checkpoint": job.checkpoint_step is not None,
        "may_steer": may_steer(request.user, job),
        "may_add": may_submit(request.user),
        "may_save_config": request.user.has_perm("jobs.add_trainingconfig"),
    }


def time_left(job: Job) -> str:
    """Return how long the steps that are left take at the pace of the last ones, or nothing while none is known."""
    if job.status != Job.Status.RUNNING or not job.total_steps:
        return ""
    recent = list(job.metrics.order_by("-step").values_list("step", "time")[:RECENT])
    if len(recent) < 2:
        return ""
    (last, ended), (first, began) = recent[0], recent[-1]
    pace = (ended - began).total_seconds() / (last - first)
    return _("about %(time)s left") % {"time": short_duration(pace * max(job.total_steps - job.step, 0))}
