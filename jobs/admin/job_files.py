"""Keep a job's checkpoint and weights from every retention rule, or no longer."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from jobs.admin.permissions import signed_in
from jobs.models import Job
from jobs.services.lifecycle import NotPossible
from jobs.services.retention import set_keep_files


@require_POST
def keep_files(request: HttpRequest, job: Job) -> HttpResponse:
    """Pin the job's files when ``value`` is 1, else unpin them."""
    try:
        set_keep_files(job, request.POST.get("value") == "1", by=signed_in(request))
    except NotPossible as refused:
        messages.warning(request, str(refused).capitalize() + ".")
    else:
        kept = _("No retention rule removes the files of job %(id)d.") % {"id": job.pk}
        free = _("Retention rules may remove the files of job %(id)d.") % {"id": job.pk}
        messages.success(request, kept if job.keep_files else free)
    return HttpResponseRedirect(reverse("admin:jobs_job_change", args=[job.pk]))
