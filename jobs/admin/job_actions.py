"""What a person does to a job: cancel, resume, hold, release. All by POST; the services decide."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST
from pydantic import ValidationError as ParametersRefused

from jobs.admin.job_add import standing
from jobs.forms import ResumeForm
from jobs.models import Job
from jobs.services.lifecycle import NotPossible, hold_job, release_job, request_cancel, resume_job


@require_http_methods(["GET", "POST"])
def cancel(request: HttpRequest, job: Job) -> HttpResponse:
    """Ask whether to cancel, then cancel."""
    if request.method == "GET":
        return _page(request, job, "jobs/cancel.html", title=_("Cancel job %(id)d?") % {"id": job.pk})
    return _attempted(request, job, request_cancel)


@require_http_methods(["GET", "POST"])
def resume(request: HttpRequest, job: Job) -> HttpResponse:
    """Ask what to change, then continue from the checkpoint."""
    try:
        form = ResumeForm(request.POST or None, job=job)
    except (ParametersRefused, KeyError):
        messages.error(request, _("Job %(id)d has parameters that no longer exist; clone it instead.") % {"id": job.pk})
        return _back(job)
    if request.method == "POST" and form.is_valid():
        try:
            return _attempted(request, job, resume_job, changes=form.changes)
        except ValidationError as error:
            for name, texts in error.message_dict.items():
                form.add_error(name if name in form.fields else None, texts)
    return _page(request, job, "jobs/resume.html", title=_("Resume job %(id)d") % {"id": job.pk}, form=form)


@require_POST
def hold(request: HttpRequest, job: Job) -> HttpResponse:
    """Keep a queued job from starting."""
    return _attempted(request, job, hold_job)


@require_POST
def release(request: HttpRequest, job: Job) -> HttpResponse:
    """Let a held job start."""
    return _attempted(request, job, release_job)


def _attempted(request: HttpRequest, job: Job, verb: Callable[..., None], **asked: Any) -> HttpResponse:
    try:
        verb(job, by=request.user, **asked)
    except NotPossible as refused:
        messages.warning(request, str(refused).capitalize() + ".")
    else:
        job.refresh_from_db()
        ending = job.status == Job.Status.RUNNING and job.cancel_requested_at
        told = _("Job %(id)d is being cancelled.") % {"id": job.pk} if ending else standing(job)
        messages.success(request, told)
    return _back(job)


def _back(job: Job) -> HttpResponse:
    return HttpResponseRedirect(reverse("admin:jobs_job_change", args=[job.pk]))


def _page(request: HttpRequest, job: Job, template: str, **context: Any) -> HttpResponse:
    page = {**admin.site.each_context(request), "opts": Job._meta, "job": job, **context}
    return TemplateResponse(request, template, page)
