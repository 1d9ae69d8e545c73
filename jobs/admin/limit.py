"""Limits: how many jobs people may run and have waiting, and how many they do."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.decorators import display
from unfold.views import ChangeList

from jobs.admin.operated import OperatedAdmin
from jobs.models import Job, Limit


class LimitForm(forms.ModelForm):
    def clean_person(self) -> Any:
        person = self.cleaned_data["person"]
        if person is None and Limit.objects.filter(person=None).exclude(pk=self.instance.pk).exists():
            raise forms.ValidationError(_("Everybody has a limit already: change that one, or name a person."))
        return person


class LimitChangeList(ChangeList):
    """Knows what the people of each row run and have waiting, read once for the page."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        limits: list[Limit] = list(self.result_list)
        own = set(Limit.objects.exclude(person=None).values_list("person__username", flat=True))
        for name, statuses in (("runs", [Job.Status.RUNNING]), ("waits", list(Job.WAITING))):
            counts = jobs_by_owner(statuses)
            for limit in limits:
                vars(limit)[name] = told(limit, counts, own)
        self.result_list: list[Limit] = limits


@admin.register(Limit)
class LimitAdmin(OperatedAdmin):
    form = LimitForm
    fields = ("person", ("max_running", "max_queued"))
    list_display = ("who", "most_running", "runs_now", "most_waiting", "waits_now")
    list_select_related = ("person",)
    search_fields = ("person__username",)
    list_note = gettext_lazy(
        "A person without a limit of their own has that of everybody; without one for everybody there is no limit. "
        "Jobs above the limit of running ones wait; a submission above that of waiting ones is refused."
    )

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[LimitChangeList]:
        return LimitChangeList

    @display(description=gettext_lazy("person"), ordering="person__username")
    def who(self, limit: Limit) -> str:
        return str(limit)

    @display(description=gettext_lazy("may run"), ordering="max_running")
    def most_running(self, limit: Limit) -> str:
        return _("no limit") if limit.max_running is None else str(limit.max_running)

    @display(description=gettext_lazy("runs now"))
    def runs_now(self, limit: Limit) -> str:
        return str(vars(limit)["runs"])

    @display(description=gettext_lazy("may have waiting"), ordering="max_queued")
    def most_waiting(self, limit: Limit) -> str:
        return _("no limit") if limit.max_queued is None else str(limit.max_queued)

    @display(description=gettext_lazy("waits now"))
    def waits_now(self, limit: Limit) -> str:
        return str(vars(limit)["waits"])


def jobs_by_owner(statuses: Sequence[str]) -> Counter[str]:
    """Return how many jobs of these statuses each person has, by user name."""
    jobs: QuerySet[Job] = Job.objects.filter(status__in=statuses).order_by()
    return Counter(dict(jobs.values_list("owner__username").annotate(Count("pk"))))


def told(limit: Limit, counts: Counter[str], own: set[str]) -> str:
    """Return a person's number; for everybody's row each number of those who have no limit of their own."""
    if limit.person:
        return str(counts[limit.person.get_username()])
    return ", ".join(f"{name} {n}" for name, n in counts.most_common() if name not in own) or "0"
