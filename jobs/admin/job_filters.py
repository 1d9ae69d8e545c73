"""Filters of the list of jobs."""

from typing import Any

from django.contrib.admin import ModelAdmin, SimpleListFilter
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from jobs.models import Job
from trainers.configs import TRAINING_TYPES


class TrainingTypeFilter(SimpleListFilter):
    """By type: a GRPO job with the CISPO loss is a GRPO job."""

    title = _("type")
    parameter_name = "training_type"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin) -> list[tuple[Any, str]]:
        return [(name, config_class.short_title) for name, config_class in TRAINING_TYPES.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        return queryset.filter(training_type=self.value()) if self.value() else queryset
