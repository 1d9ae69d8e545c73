"""The page on which a job that waits is edited: the form that submitted it, filled with what it asks for."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from jobs.admin.form_page import named_type, show_form, tell
from jobs.admin.job_add import as_typed, confirmed, preview_answer, previewed, standing
from jobs.admin.permissions import signed_in
from jobs.forms import JobForm, job_form
from jobs.forms.prefill import from_waiting
from jobs.models import Job
from jobs.services.edit import edit_job
from jobs.services.lifecycle import NotPossible, refusal
from trainers.configs import TRAINING_TYPES


@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, job: Job) -> HttpResponse:
    """Show the form, or edit the job as posted; one that does not wait any more is only shown."""
    if job.status not in Job.WAITING:
        return _back(request, job, f"{refusal(job)}.")
    if job.training_type not in TRAINING_TYPES:
        gone = _("the training type %(type)s no longer exists; the job can only be cancelled.")
        return _back(request, job, gone % {"type": job.training_type})
    if request.method == "GET":
        prefill = from_waiting(job)
        tell(request, prefill)
        return _page(request, job, _form(request, job, initial=prefill.initial))
    return _edited(request, job, _form(request, job, data=request.POST))


@require_POST
def preview_edited(request: HttpRequest, job: Job) -> JsonResponse:
    """Answer with the command that the typed form stands for, or with what is wrong in it."""
    form = _form(request, job, data=confirmed(request.POST))
    return preview_answer(form, previewed(request, form, job.run_dir))


def _form(request: HttpRequest, job: Job, **filled: Any) -> JobForm:
    return job_form(named_type(job.training_type))(person=signed_in(request), edited=job, **filled)


def _edited(request: HttpRequest, job: Job, form: JobForm) -> HttpResponse:
    if not form.is_valid():
        return _page(request, job, form)
    try:
        edit_job(job, form.submission(job.owner), by=signed_in(request))
    except NotPossible as refused:
        return _back(request, job, f"{refused}.")
    except ValidationError as error:
        form.add_field_errors(error)
        return _page(request, job, form)
    messages.success(request, standing(job))
    return redirect("admin:jobs_job_change", job.pk)


def _back(request: HttpRequest, job: Job, why: str) -> HttpResponse:
    messages.warning(request, why[0].upper() + why[1:])
    return redirect("admin:jobs_job_change", job.pk)


def _page(request: HttpRequest, job: Job, form: JobForm) -> HttpResponse:
    typed = confirmed(request.POST if form.is_bound else as_typed(form))
    return show_form(
        request,
        form,
        model=Job,
        title=_("Edit job %(id)d") % {"id": job.pk},
        template="jobs/job_edit.html",
        job=job,
        command=previewed(request, _form(request, job, data=typed), job.run_dir),
        save_label=_("Save"),
        preview_url=reverse("admin:jobs_job_edit_preview", args=[job.pk]),
    )
