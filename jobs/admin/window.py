"""Windows: the hours in which jobs may start, and whether they are open now."""

import zoneinfo
from datetime import datetime
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponseRedirect
from django.urls import reverse
from django.utils import formats, timezone
from django.utils.dates import WEEKDAYS, WEEKDAYS_ABBR
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from unfold.decorators import display
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminSelect2Widget, UnfoldAdminTimeWidget

from jobs.admin.operated import OperatedAdmin
from jobs.admin.permissions import may_operate, number
from jobs.models import Job, Window
from jobs.models.window import EVERY_DAY
from jobs.services.windows import closes_at, is_open, next_opening


def time_zones() -> list[tuple[str, str]]:
    return [(name, name) for name in sorted(zoneinfo.available_timezones())]


class WindowForm(forms.ModelForm):
    time_zone = forms.ChoiceField(label=gettext_lazy("Time zone"), choices=time_zones, widget=UnfoldAdminSelect2Widget)
    weekdays = forms.MultipleChoiceField(
        label=gettext_lazy("Weekdays"),
        choices=[(str(day), name) for day, name in WEEKDAYS.items()],
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text=gettext_lazy("On which it opens; a night that begins on Friday belongs to Friday."),
    )

    class Meta:
        widgets = {name: UnfoldAdminTimeWidget(format="%H:%M") for name in ("opens", "closes")}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "weekdays" in self.initial:
            self.initial["weekdays"] = list(self.initial["weekdays"])

    def clean_weekdays(self) -> str:
        return "".join(sorted(self.cleaned_data["weekdays"]))


@admin.register(Window)
class WindowAdmin(OperatedAdmin):
    form = WindowForm
    fields = ("name", "time_zone", "weekdays", ("opens", "closes"), "at_end")
    readonly_fields = ("days",)
    list_display = ("name", "now", "days", "hours", "time_zone", "at_end", "waiting_jobs")
    search_fields = ("name",)
    list_note = gettext_lazy("Hours in which jobs may start. A job's form names the window that it waits for.")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Window]:
        windows: QuerySet[Window] = super().get_queryset(request)
        return windows.annotate(waiting=Count("jobs", filter=Q(jobs__status__in=Job.WAITING)))

    def get_fields(self, request: HttpRequest, obj: Window | None = None) -> tuple[Any, ...]:
        if may_operate(request.user):
            return self.fields
        return tuple("days" if name == "weekdays" else name for name in self.fields)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        zone = timezone.get_current_timezone_name()
        asked: dict[str, Any] = super().get_changeform_initial_data(request)
        return {"time_zone": zone, "weekdays": EVERY_DAY} | asked

    @display(description=gettext_lazy("now"), label={"open": "success", "closed": "default"})
    def now(self, window: Window) -> tuple[str, str]:
        """Return whether it is open: a word for the colour and a sentence for the reader."""
        return standing(window, timezone.now())

    @display(description=gettext_lazy("weekdays"))
    def days(self, window: Window) -> str:
        if window.weekdays == EVERY_DAY:
            return _("every day")
        return " ".join(str(WEEKDAYS_ABBR[int(day)]) for day in window.weekdays)

    @display(description=gettext_lazy("hours"), ordering="opens")
    def hours(self, window: Window) -> SafeString:
        hours = f"{window.opens:%H:%M}–{window.closes:%H:%M}"
        return format_html('<span class="ns-nowrap">{}</span>', hours)

    @display(description=gettext_lazy("jobs waiting"), ordering="waiting")
    def waiting_jobs(self, window: Window) -> SafeString | int:
        n = int(vars(window)["waiting"])
        url = reverse("admin:jobs_job_changelist")
        link = '<a class="ns-link" href="{}?window__id__exact={}">{}</a>'
        return format_html(link, url, window.pk, n) if n else 0

    def delete_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> Any:
        used = Job.objects.filter(window_id=number(object_id)).count()
        if not used:
            return super().delete_view(request, object_id, *args, **kwargs)
        told = ngettext(
            "This window cannot be deleted: %(n)d job names it, as it waits or as its record. "
            "Change the window instead.",
            "This window cannot be deleted: %(n)d jobs name it, as they wait or as their record. "
            "Change the window instead.",
            used,
        )
        messages.error(request, told % {"n": used})
        return HttpResponseRedirect(reverse("admin:jobs_window_change", args=[object_id]))


def standing(window: Window, now: datetime) -> tuple[str, str]:
    """Return whether a window is open or closed, and until when, in the reader's time zone."""
    if is_open(window, now):
        end = closes_at(window, now)
        return "open", _("open until %(time)s") % {"time": moment(end, now)} if end else _("always open")
    start = next_opening(window, now)
    return "closed", _("opens %(time)s") % {"time": moment(start, now)} if start else _("never opens")


def moment(then: datetime, now: datetime) -> str:
    """Return a time of the coming week: its weekday stands before it unless it is today."""
    there = timezone.localtime(then)
    return formats.date_format(there, "H:i" if there.date() == timezone.localtime(now).date() else "D H:i")
