"""Events: who did what, when; those of devices and hosts stand without a job."""

from django.contrib import admin
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.decorators import display

from jobs.admin.read_only import ReadOnlyAdmin
from jobs.models import Event


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    list_display = ("when", "what", "of_job", "who", "told")
    list_display_links = None
    list_filter = ("kind", ("job", admin.EmptyFieldListFilter), ("actor", admin.RelatedOnlyFieldListFilter))
    search_fields = ("=job__id", "detail", "actor__username")
    date_hierarchy = "created_at"
    list_select_related = ("job", "actor")
    show_full_result_count = False

    @display(description=gettext_lazy("when"), ordering="created_at")
    def when(self, event: Event) -> SafeString:
        return render_to_string("jobs/moment.html", {"moment": event.created_at})

    @display(description=gettext_lazy("what"), ordering="kind")
    def what(self, event: Event) -> str:
        return event.get_kind_display()

    @display(description=gettext_lazy("job"), ordering="job_id")
    def of_job(self, event: Event) -> SafeString | str:
        if event.job is None:
            return ""
        url = reverse("admin:jobs_job_change", args=[event.job_id])
        return format_html('<a class="ns-link" href="{}">{}</a>', url, event.job)

    @display(description=gettext_lazy("who"), ordering="actor__username")
    def who(self, event: Event) -> str:
        return event.actor.get_username() if event.actor else _("the queue")

    @display(description=gettext_lazy("detail"))
    def told(self, event: Event) -> SafeString:
        return format_html('<span class="ns-wrap">{}</span>', event.detail)
