"""The columns of the list of jobs."""

from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from jobs.admin.durations import running_time, waiting_time
from jobs.models import Job

STATUS_COLOURS = {
    Job.Status.HELD: "default",
    Job.Status.QUEUED: "info",
    Job.Status.RUNNING: "primary",
    Job.Status.COMPLETED: "success",
    Job.Status.FAILED: "danger",
    Job.Status.OUT_OF_MEMORY: "danger",
    Job.Status.TIMED_OUT: "warning",
    Job.Status.CANCELLED: "default",
    Job.Status.LOST: "danger",
}


@display(description=_("job"), ordering="id", header=True)
def job(job: Job) -> tuple[str, str]:
    return f"{job.pk} {job.title}", job.name


@display(description=_("status"), ordering="status", label=STATUS_COLOURS)
def status(job: Job) -> tuple[str, str]:
    return job.status, job.get_status_display()


@display(description=_("why"), empty_value="")
def reason(job: Job) -> SafeString:
    text = getattr(job, "reason", job.cause)
    title = "\n".join(filter(None, (text, job.advice)))
    unfinished = format_html("{}", "data-unfinished") if not job.is_finished else ""
    return format_html('<span class="ns-reason" title="{}" {}>{}</span>', title, unfinished, text)


@display(description=_("owner"), ordering="owner__username")
def owner(job: Job) -> str:
    return job.owner.get_username()


@display(description=_("device"))
def device(job: Job) -> str:
    """Return where the last attempt ran, else what was asked; of several devices how many."""
    attempts = list(job.attempts.all())
    if attempts and attempts[-1].device:
        return several(attempts[-1].device.name, attempts[-1].device_count)
    return several(job.device or job.device_label or job.get_device_request_display(), job.device_count)


def several(device: object, count: int) -> str:
    """Return a device with how many of its kind, where it is more than one."""
    return f"{count} × {device}" if count > 1 else str(device)


@display(description=_("progress"))
def progress(job: Job) -> SafeString:
    return render_to_string("jobs/progress.html", {"job": job})


@display(description=_("last"))
def last_value(job: Job) -> SafeString | str:
    for name in ("reward", "loss"):
        if name in job.last_values:
            return format_html('<span class="ns-nowrap">{} {}</span>', name, f"{job.last_values[name]:.4g}")
    return ""


@display(description=_("waited"))
def waited(job: Job) -> SafeString:
    return format_html('<span class="ns-nowrap">{}</span>', waiting_time(job))


@display(description=_("ran"))
def ran(job: Job) -> SafeString:
    return format_html('<span class="ns-nowrap">{}</span>', running_time(job))


@display(description=_("created"), ordering="created_at")
def created(job: Job) -> SafeString:
    return render_to_string("jobs/moment.html", {"moment": job.created_at})
