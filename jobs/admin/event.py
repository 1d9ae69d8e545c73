"""Events: who did what, when."""

from django.contrib import admin

from jobs.admin.read_only import ReadOnlyAdmin
from jobs.models import Event


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "job", "kind", "actor", "detail")
    list_filter = ("kind", ("actor", admin.RelatedOnlyFieldListFilter))
    search_fields = ("=job__id", "detail", "actor__username")
    date_hierarchy = "created_at"
    list_select_related = ("job", "actor")
    show_full_result_count = False
