"""The head of a job's page: status, reason, progress, and what the reader may do."""

from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from jobs.admin.durations import running_time, short_duration, waiting_time
from jobs.admin.job_columns import STATUS_COLOURS, several
from jobs.admin.permissions import may_operate, may_steer, may_submit
from jobs.models import Job
from jobs.services.chain import BADLY, blocked_chain
from jobs.services.forecast import expected_starts
from jobs.services.placement import plan
from jobs.services.reasons import waiting_reasons
from jobs.services.schedule import queue_state
from jobs.worker.time_limit import seconds_used, spelled

RECENT = 20


def header_context(request: HttpRequest, job: Job) -> dict[str, Any]:
    """Return what ``job_header.html`` shows."""
    state = queue_state(timezone.now()) if job.status in Job.WAITING else None
    return {
        "job": job,
        "colour": STATUS_COLOURS[Job.Status(job.status)],
        "reason": waiting_reasons([job], plan(state)).get(job.pk, job.cause) if state else job.cause,
        "time_left": time_left(job),
        "waited": waiting_time(job),
        "ran": running_time(job),
        "usable_checkpoint": job.checkpoint_step is not None,
        "may_steer": may_steer(request.user, job),
        "may_operate": may_operate(request.user),
        "devices": devices(job),
        "starts": expected_starts(state).get(job.pk) if state else None,
        "time_limit": time_limit(job),
        **chain_context(request, job),
        "may_add": may_submit(request.user),
        "may_save_config": request.user.has_perm("jobs.add_trainingconfig"),
    }


def devices(job: Job) -> str:
    """Return the devices of the last attempt, or what the job asks for."""
    last = job.attempts.order_by("number").last()
    if last is not None and job.status not in Job.WAITING:
        return ", ".join(str(device) for device in last.devices.all()) or str(last.device or "")
    return several(job.device or job.device_label or job.get_device_request_display(), job.device_count)


def time_limit(job: Job) -> str:
    """Return the time limit and how much of it is used, or nothing without one."""
    if job.time_limit is None:
        return ""
    used = int(seconds_used(job, timezone.now()) / 60)
    return _("%(limit)s, of which %(used)s are used") % {"limit": spelled(job.time_limit), "used": spelled(used)}


def chain_context(request: HttpRequest, job: Job) -> dict[str, Any]:
    """Return the jobs that wait in vain for this one, or for the one that this one waits for."""
    parent = job.depends_on if job.status in Job.WAITING and job.depends_on else job
    if parent != job and (parent.status not in BADLY or job.dependency_rule == Job.DependencyRule.ANY_END):
        return {}
    chain = blocked_chain(parent)
    may = all(may_steer(request.user, child) for child in chain)
    return {"chain": chain, "chain_parent": parent, "may_steer_chain": may}


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
