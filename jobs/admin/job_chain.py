"""What a person does to the jobs that wait for one that ended badly."""

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST

from jobs.admin.permissions import may_steer, signed_in
from jobs.models import Job
from jobs.services.chain import cancel_chain, chain_of, release_chain
from jobs.services.lifecycle import NotPossible


@require_POST
def release(request: HttpRequest, job: Job) -> HttpResponse:
    """Let the jobs start that waited for this one's success."""
    _require_steering(request, job)
    try:
        released = release_chain(job, by=signed_in(request))
    except NotPossible as refused:
        messages.warning(request, f"{refused}.".capitalize())
    else:
        told = ngettext("%(n)d job waits no longer.", "%(n)d jobs wait no longer.", len(released))
        messages.success(request, told % {"n": len(released)})
    return _back(job)


@require_http_methods(["GET", "POST"])
def cancel(request: HttpRequest, job: Job) -> HttpResponse:
    """Ask, then cancel all that waits for this job, directly and further on."""
    _require_steering(request, job)
    if request.method == "GET":
        title = _("Cancel what waits for job %(id)d?") % {"id": job.pk}
        page = {**admin.site.each_context(request), "opts": Job._meta, "job": job, "title": title}
        return TemplateResponse(request, "jobs/chain_cancel.html", page | {"chain": chain_of(job)})
    try:
        cancelled = cancel_chain(job, by=signed_in(request))
    except NotPossible as refused:
        messages.warning(request, f"{refused}.".capitalize())
    else:
        told = ngettext("%(n)d job was cancelled.", "%(n)d jobs were cancelled.", len(cancelled))
        messages.success(request, told % {"n": len(cancelled)})
    return _back(job)


def _require_steering(request: HttpRequest, job: Job) -> None:
    """Raise PermissionDenied unless a person may steer every job of the chain: it is treated as a whole."""
    if not all(may_steer(request.user, child) for child in chain_of(job)):
        raise PermissionDenied


def _back(job: Job) -> HttpResponse:
    return HttpResponseRedirect(reverse("admin:jobs_job_change", args=[job.pk]))
