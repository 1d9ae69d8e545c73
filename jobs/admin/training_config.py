"""Saved configurations: listed, filled into a form, queued from their row; those that ship are only copied."""

import uuid
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST
from unfold.admin import ModelAdmin
from unfold.decorators import display

from jobs.admin.config_page import add_config, change_config
from jobs.admin.job_add import as_typed, submitted
from jobs.admin.job_filters import TrainingTypeFilter
from jobs.admin.permissions import may_edit_config, may_submit, number, signed_in
from jobs.forms import job_form
from jobs.forms.prefill import from_config, usable_configs
from jobs.models import TrainingConfig
from trainers.configs import TRAINING_TYPES


@admin.register(TrainingConfig)
class TrainingConfigAdmin(ModelAdmin):
    list_display = ("name", "type_title", "keeper", "note", "builtin", "updated_at", "row_actions")
    list_filter = (TrainingTypeFilter, "builtin", ("owner", admin.RelatedOnlyFieldListFilter))
    search_fields = ("name", "note", "owner__username")
    list_select_related = ("owner",)
    list_fullwidth = True

    def get_queryset(self, request: HttpRequest) -> QuerySet[TrainingConfig]:
        everything: QuerySet[TrainingConfig] = super().get_queryset(request)
        return everything if request.user.is_superuser else everything.filter(Q(owner=request.user) | Q(owner=None))

    def has_change_permission(self, request: HttpRequest, obj: TrainingConfig | None = None) -> bool:
        allowed = super().has_change_permission(request, obj)
        return allowed and (obj is None or may_edit_config(request.user, obj))

    def has_delete_permission(self, request: HttpRequest, obj: TrainingConfig | None = None) -> bool:
        allowed = super().has_delete_permission(request, obj)
        return allowed and (obj is None or may_edit_config(request.user, obj))

    @display(description=gettext_lazy("type"), ordering="training_type")
    def type_title(self, saved: TrainingConfig) -> str:
        known = TRAINING_TYPES.get(saved.training_type)
        return known.title if known else saved.training_type

    @display(description=gettext_lazy("owner"), ordering="owner__username")
    def keeper(self, saved: TrainingConfig) -> str:
        return saved.owner.get_username() if saved.owner else _("the team")

    @display(description="")
    def row_actions(self, saved: TrainingConfig) -> SafeString:
        return render_to_string("jobs/config_actions.html", {"saved": saved, "key": uuid.uuid4()})

    def add_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not self.has_add_permission(request):
            raise PermissionDenied
        return add_config(request)

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponseBase:
        saved = get_object_or_404(self.get_queryset(request), pk=number(object_id))
        if not self.has_view_or_change_permission(request, saved):
            raise PermissionDenied
        return change_config(request, saved, may_edit=self.has_change_permission(request, saved))

    def get_urls(self) -> list[URLPattern]:
        queue = self.admin_site.admin_view(queue_config)
        return [path("<int:object_id>/queue/", queue, name="jobs_trainingconfig_queue"), *super().get_urls()]


@require_POST
def queue_config(request: HttpRequest, object_id: int) -> HttpResponse:
    """Queue a job with a saved configuration, or open the form where something has to be looked at first."""
    if not may_submit(request.user):
        raise PermissionDenied
    saved = get_object_or_404(usable_configs(signed_in(request)), pk=object_id)
    prefill = from_config(saved)
    typed = as_typed(job_form(prefill.config_class)(initial=prefill.initial))
    typed["submission_key"] = request.POST.get("submission_key", "")
    form = job_form(prefill.config_class)(typed)
    job = None if prefill.warnings else submitted(request, form)
    if job is not None:
        return HttpResponseRedirect(reverse("admin:jobs_job_change", args=[job.pk]))
    for text in [*form.warnings.values(), *form.non_field_errors()]:
        messages.warning(request, text)
    messages.warning(request, _("Look at the form first, then queue it."))
    return HttpResponseRedirect(f"{reverse('admin:jobs_job_add')}?config={saved.pk}")
