"""An admin that shows rows and changes none."""

from typing import Any

from django.http import HttpRequest
from unfold.admin import ModelAdmin


class ReadOnlyAdmin(ModelAdmin):
    """Rows that the queue writes and people read."""

    actions = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
