"""Retention rules: what each would remove now, and removing it."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_http_methods
from unfold.decorators import display
from unfold.widgets import UnfoldAdminSelectWidget

from jobs.admin.operated import OperatedAdmin
from jobs.admin.permissions import may_operate, require_operator, signed_in
from jobs.models import RetentionRule
from jobs.services import retention
from jobs.services.disk import gigabytes
from trainers.configs import TRAINING_TYPES

SHOWN = 200  # rows of the dry run


def types() -> list[tuple[str, str]]:
    return [("", _("Every type")), *((name, config_class.short_title) for name, config_class in TRAINING_TYPES.items())]


class RetentionRuleForm(forms.ModelForm):
    training_type = forms.ChoiceField(
        label=gettext_lazy("Type"), required=False, choices=types, widget=UnfoldAdminSelectWidget
    )


@admin.register(RetentionRule)
class RetentionRuleAdmin(OperatedAdmin):
    form = RetentionRuleForm
    fields = (
        ("name", "active"),
        ("training_type", "removes"),
        "keep_days",
        ("keep_last", "keep_best"),
        ("metric", "lower_is_better"),
    )
    list_display = ("name", "active", "type_title", "removes", "keep_days", "keep_last", "keep_best", "metric")
    list_note = gettext_lazy(
        "An active rule removes checkpoints, or weights as well, of ended jobs once a day. A rule's page shows what it "
        "would remove now."
    )
    change_form_outer_after_template = "jobs/removals.html"

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> Any:
        rule = self.get_object(request, object_id)
        if rule is not None and self.has_view_permission(request, rule):
            dry_run = removals_context(rule) | {"may_operate": may_operate(request.user)}
            kwargs["extra_context"] = (kwargs.get("extra_context") or {}) | dry_run
        return super().change_view(request, object_id, *args, **kwargs)

    def get_urls(self) -> list[URLPattern]:
        page = self.admin_site.admin_view(remove_now)
        return [path("<int:object_id>/remove/", page, name="jobs_retentionrule_remove"), *super().get_urls()]

    @display(description=gettext_lazy("type"), ordering="training_type")
    def type_title(self, rule: RetentionRule) -> str:
        known = TRAINING_TYPES.get(rule.training_type)
        return known.short_title if known else rule.training_type or _("every type")


@require_http_methods(["GET", "POST"])
def remove_now(request: HttpRequest, object_id: int) -> HttpResponse:
    """Show what a rule removes and ask, then remove it."""
    require_operator(request)
    rule = get_object_or_404(RetentionRule, pk=object_id)
    if request.method == "POST":
        removed = retention.apply(rule, by=signed_in(request))
        told = ngettext(
            "The files of %(n)d job (%(size)s) are removed by their hosts.",
            "The files of %(n)d jobs (%(size)s) are removed by their hosts.",
            len(removed),
        )
        size = gigabytes(sum(removal.size for removal in removed))
        messages.success(request, told % {"n": len(removed), "size": size})
        return HttpResponseRedirect(reverse("admin:jobs_retentionrule_change", args=[rule.pk]))
    page = {**admin.site.each_context(request), **removals_context(rule), "opts": RetentionRule._meta}
    title = _("Remove what “%(rule)s” names?") % {"rule": rule}
    return TemplateResponse(request, "jobs/remove_now.html", {**page, "title": title})


def removals_context(rule: RetentionRule) -> dict[str, Any]:
    """Return what a rule would remove now, largest first, and how much that is together."""
    found = sorted(retention.removals(rule), key=lambda removal: -removal.size)
    return {
        "rule": rule,
        "removals": [(each, RetentionRule.Removes(each.what).label, gigabytes(each.size)) for each in found[:SHOWN]],
        "removal_count": len(found),
        "removal_total": gigabytes(sum(removal.size for removal in found)),
        "more_removals": max(len(found) - SHOWN, 0),
    }
