"""Failure patterns: what lines of a log mean. Operators add their own, and try them on a line."""

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods
from unfold.decorators import display
from unfold.widgets import UnfoldAdminTextareaWidget

from jobs.admin.operated import OperatedAdmin
from jobs.admin.permissions import require_viewer
from jobs.models import FailurePattern, Job
from jobs.worker.first_match import TooSlow, first_match_apart
from jobs.worker.last_line import readable_lines

FIXED_IF_BUILTIN = ("title", "pattern", "machine_fault", "out_of_memory")


class TryForm(forms.Form):
    log = forms.CharField(
        label=gettext_lazy("Lines of a log"),
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 4, "class": "ns-mono"}),
        strip=False,
        max_length=16_384,
    )


@admin.register(FailurePattern)
class FailurePatternAdmin(OperatedAdmin):
    fields = ("title", "pattern", "advice", "machine_fault", "out_of_memory", "order")
    list_display = ("title", "order", "expression", "what_to_do", "then", "source")
    list_editable = ("order",)
    list_filter = ("machine_fault", "builtin")
    search_fields = ("title", "pattern", "advice")
    list_before_template = "jobs/try_pattern_link.html"

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and not (obj and obj.builtin)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return FIXED_IF_BUILTIN if obj and obj.builtin else ()

    def get_urls(self) -> list[URLPattern]:
        page = self.admin_site.admin_view(try_patterns)
        return [path("try/", page, name="jobs_failurepattern_try"), *super().get_urls()]

    @display(description=gettext_lazy("pattern"))
    def expression(self, pattern: FailurePattern) -> SafeString:
        return format_html('<code class="ns-reason">{}</code>', pattern.pattern)

    @display(description=gettext_lazy("advice"))
    def what_to_do(self, pattern: FailurePattern) -> SafeString | str:
        return format_html('<span class="ns-reason">{}</span>', pattern.advice) if pattern.advice else ""

    @display(description=gettext_lazy("then"), ordering="machine_fault")
    def then(self, pattern: FailurePattern) -> str:
        if pattern.out_of_memory:
            return str(Job.Status.OUT_OF_MEMORY.label)
        return _("Tried again") if pattern.machine_fault else str(Job.Status.FAILED.label)

    @display(description=gettext_lazy("from"), ordering="builtin")
    def source(self, pattern: FailurePattern) -> str:
        return _("Nightshift") if pattern.builtin else _("the team")


@require_http_methods(["GET", "POST"])
def try_patterns(request: HttpRequest) -> HttpResponse:
    """Answer with the pattern that a failed job whose log ends like this would be named by."""
    require_viewer(request)
    form = TryForm(request.POST or None)
    page: dict[str, Any] = {"form": form, "title": _("Try the failure patterns"), "opts": FailurePattern._meta}
    if request.method == "POST" and form.is_valid():
        lines = list(readable_lines(form.cleaned_data["log"]))
        try:
            page |= {"found": first_match_apart(FailurePattern.objects.all(), lines), "tried": True}
        except TooSlow:
            form.add_error("log", _("too many patterns take too long on these lines"))
    return TemplateResponse(request, "jobs/try_pattern.html", {**admin.site.each_context(request), **page})
