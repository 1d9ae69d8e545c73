"""The list of jobs and the way to each page of a job. A job is submitted, steered, read, and edited while it waits."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponseBase
from django.urls import URLPattern, path
from unfold.admin import ModelAdmin

from jobs.admin import job_columns as columns
from jobs.admin.data_check import check_data
from jobs.admin.job_actions import cancel, hold, release, resume
from jobs.admin.job_add import add_job, preview_command
from jobs.admin.job_chain import cancel as cancel_chain
from jobs.admin.job_chain import release as release_chain
from jobs.admin.job_data import artifact, live, samples
from jobs.admin.job_edit import edit, preview_edited
from jobs.admin.job_files import keep_files
from jobs.admin.job_filters import TrainingTypeFilter
from jobs.admin.job_list import JobChangeList
from jobs.admin.job_log import log, log_download
from jobs.admin.job_order import put, show_queue
from jobs.admin.job_page import show_job
from jobs.admin.path_picker import folder, upload
from jobs.admin.permissions import may_see, may_submit, on_job
from jobs.models import Job


@admin.register(Job)
class JobAdmin(ModelAdmin):
    list_display = (
        columns.job,
        columns.status,
        columns.reason,
        columns.owner,
        columns.device,
        columns.progress,
        columns.last_value,
        columns.waited,
        columns.ran,
        columns.created,
    )
    list_display_links = (columns.job,)
    list_filter = (
        "status",
        TrainingTypeFilter,
        ("owner", admin.RelatedOnlyFieldListFilter),
        ("batch", admin.RelatedOnlyFieldListFilter),
        ("attempts__device", admin.RelatedOnlyFieldListFilter),
    )
    search_fields = ("=id", "name", "owner__username", "cause")
    search_help_text = "id, name, owner, cause"
    date_hierarchy = "created_at"
    list_select_related = ("owner", "batch", "worker__device", "device")
    list_per_page = 50
    list_fullwidth = True
    show_full_result_count = False
    actions = None

    class Media:
        js = ("jobs/job_list.js",)

    def has_view_permission(self, request: HttpRequest, obj: Job | None = None) -> bool:
        return may_see(request.user)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[JobChangeList]:
        return JobChangeList

    def has_add_permission(self, request: HttpRequest) -> bool:
        return may_submit(request.user)

    def has_change_permission(self, request: HttpRequest, obj: Job | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Job | None = None) -> bool:
        return False

    def add_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return add_job(request)

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return on_job(show_job)(request, object_id)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        pages = [
            path("queue/", view(show_queue), name="jobs_job_queue"),
            path("preview/", view(preview_command), name="jobs_job_preview"),
            path("folder/", view(folder), name="jobs_job_folder"),
            path("data/", view(check_data), name="jobs_job_check"),
            path("upload/", view(upload), name="jobs_job_upload"),
            path("<int:object_id>/live/", on_job(live), name="jobs_job_live"),
            path("<int:object_id>/samples/", on_job(samples), name="jobs_job_samples"),
            path("<int:object_id>/artifact/", on_job(artifact), name="jobs_job_artifact"),
            path("<int:object_id>/log/", on_job(log), name="jobs_job_log"),
            path("<int:object_id>/log.txt", on_job(log_download), name="jobs_job_log_download"),
            path("<int:object_id>/cancel/", on_job(cancel, steers=True), name="jobs_job_cancel"),
            path("<int:object_id>/edit/", on_job(edit, steers=True), name="jobs_job_edit"),
            path("<int:object_id>/edit/preview/", on_job(preview_edited, steers=True), name="jobs_job_edit_preview"),
            path("<int:object_id>/resume/", on_job(resume, steers=True), name="jobs_job_resume"),
            path("<int:object_id>/hold/", on_job(hold, steers=True), name="jobs_job_hold"),
            path("<int:object_id>/release/", on_job(release, steers=True), name="jobs_job_release"),
            path("<int:object_id>/put/", on_job(put), name="jobs_job_put"),
            path("<int:object_id>/release_chain/", on_job(release_chain), name="jobs_job_release_chain"),
            path("<int:object_id>/cancel_chain/", on_job(cancel_chain), name="jobs_job_cancel_chain"),
            path("<int:object_id>/keep/", on_job(keep_files, steers=True), name="jobs_job_keep"),
        ]
        return [*pages, *super().get_urls()]
