"""An admin that shows rows and changes none."""

from typing import Any

from django.http import HttpRequest
from unfold.admin import ModelAdmin

from jobs.admin.permissions import may_see


class ReadOnlyAdmin(ModelAdmin):
    """Rows that the queue writes, and that everybody reads who sees the team's jobs."""

    actions = None

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_see(request.user)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
