"""The page on which a job is submitted, and the preview of its command."""

import shlex

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from jobs.admin.form_page import asked_prefill, chosen_type, retyped, show_form, tell
from jobs.admin.permissions import may_submit, signed_in
from jobs.forms import JobForm, job_form
from jobs.models import Job
from jobs.services.reasons import waiting_reasons
from jobs.services.submit import config_for, frozen_command, submit_job

# The number of a job is known once it is submitted.
PREVIEW_RUN_DIR = "runs/N"


def add_job(request: HttpRequest) -> HttpResponse:
    """Show the form, or submit what was posted."""
    if not may_submit(request.user):
        raise PermissionDenied
    prefill = retyped(request) if request.method == "POST" else asked_prefill(request)
    if prefill is None:
        form = job_form(chosen_type(request.POST))(request.POST, person=signed_in(request))
        job = submitted(request, form)
        return _page(request, form) if job is None else redirect("admin:jobs_job_change", job.pk)
    tell(request, prefill)
    form = job_form(prefill.config_class)(initial=prefill.initial, person=signed_in(request))
    return _page(request, form)


def submitted(request: HttpRequest, form: JobForm) -> Job | None:
    """Queue what a form asks and tell where it stands, or put the errors at the form's fields."""
    if not form.is_valid():
        return None
    try:
        job = submit_job(form.submission(signed_in(request)))
    except ValidationError as error:
        form.add_field_errors(error)
        return None
    messages.success(request, standing(job))
    return job


def standing(job: Job) -> str:
    """Return where a job stands, in a sentence."""
    reason = waiting_reasons([job]).get(job.pk, "")
    status = job.get_status_display().lower()
    if not reason or job.status == Job.Status.HELD:
        return _("Job %(id)d is %(status)s.") % {"id": job.pk, "status": status}
    return _("Job %(id)d is queued, %(reason)s.") % {"id": job.pk, "reason": reason}


@require_POST
def preview_command(request: HttpRequest) -> JsonResponse:
    """Answer with the command that the typed form stands for, or with what is wrong in it."""
    if not may_submit(request.user):
        raise PermissionDenied
    form = job_form(chosen_type(request.POST))(confirmed(request.POST))
    return preview_answer(form, previewed(request, form))


def preview_answer(form: JobForm, command: str) -> JsonResponse:
    """Return the answer to the page that shows the command while a form is typed."""
    errors = {name: [str(text) for text in texts] for name, texts in form.errors.items()}
    return JsonResponse({"command": command, "errors": errors, "warnings": form.warnings})


def previewed(request: HttpRequest, form: JobForm, run_dir: str = PREVIEW_RUN_DIR) -> str:
    """Return the command of a valid form, else nothing."""
    if not form.is_valid():
        return ""
    try:
        submission = form.submission(signed_in(request))
        config = config_for(submission)
    except ValidationError as error:
        form.add_field_errors(error)
        return ""
    return shlex.join(frozen_command(config, run_dir, submission.device_count))


def confirmed(data: QueryDict) -> QueryDict:
    """Return a posted form as if what it warns of were confirmed."""
    confirmed = data.copy()
    confirmed["queue_anyway"] = "on"
    return confirmed


def as_typed(form: JobForm) -> QueryDict:
    """Return a form's values as if a person had posted them unchanged."""
    typed = QueryDict(mutable=True)
    for field in form:
        value = field.value()
        if value not in (None, "", False):
            typed[field.html_name] = str(value)
    return typed


def _page(request: HttpRequest, form: JobForm) -> HttpResponse:
    typed = request.POST if form.is_bound else as_typed(form)
    command = previewed(request, type(form)(confirmed(typed)))
    return show_form(
        request,
        form,
        model=Job,
        title=_("Add job"),
        template="jobs/job_form.html",
        command=command,
        save_label=_("Queue job"),
        preview_url=reverse("admin:jobs_job_preview"),
    )
