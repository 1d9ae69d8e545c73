"""An admin of what operators set for everybody, and everybody reads who sees the team's jobs."""

from typing import Any

from django.http import HttpRequest
from django.utils.functional import Promise
from unfold.admin import ModelAdmin

from jobs.admin.permissions import may_operate, may_see


class OperatedAdmin(ModelAdmin):
    """Rows that operators add, change and delete one at a time; ``list_note`` says above the list what they do."""

    actions = None
    list_before_template = "jobs/list_note.html"
    list_note: str | Promise = ""

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_see(request.user)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return may_operate(request.user)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_operate(request.user)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_operate(request.user)
