"""Batches: sets of jobs that are followed together."""

from django.contrib import admin
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from jobs.admin.read_only import ReadOnlyAdmin
from jobs.models import Batch, Job


@admin.register(Batch)
class BatchAdmin(ReadOnlyAdmin):
    list_display = ("name", "owner", "completed", "unfinished", "failed", "created_at", "jobs_link")
    search_fields = ("name", "owner__username")
    list_select_related = ("owner",)
    fields = ("name", "owner", "created_at", "jobs_link")
    readonly_fields = ("jobs_link",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Batch]:
        ended_badly = set(Job.FINISHED) - {Job.Status.COMPLETED}
        batches: QuerySet[Batch] = super().get_queryset(request)
        return batches.annotate(
            completed=Count("jobs", filter=Q(jobs__status=Job.Status.COMPLETED)),
            unfinished=Count("jobs", filter=Q(jobs__status__in=Job.UNFINISHED)),
            failed=Count("jobs", filter=Q(jobs__status__in=ended_badly)),
        )

    @display(description=_("completed"))
    def completed(self, batch: Batch) -> int:
        return int(vars(batch)["completed"])

    @display(description=_("waiting or running"))
    def unfinished(self, batch: Batch) -> int:
        return int(vars(batch)["unfinished"])

    @display(description=_("failed or cancelled"))
    def failed(self, batch: Batch) -> int:
        return int(vars(batch)["failed"])

    @display(description=_("jobs"))
    def jobs_link(self, batch: Batch) -> SafeString:
        url = reverse("admin:jobs_job_changelist")
        return format_html('<a class="ns-link" href="{}?batch__id__exact={}">{}</a>', url, batch.pk, _("Show jobs"))
