"""Taking a device out of the queue's hands, and giving it back."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST
from unfold.widgets import UnfoldAdminRadioSelectWidget, UnfoldAdminTextInputWidget

from jobs.admin.permissions import require_operator, signed_in
from jobs.models import Device
from jobs.services.drain import drain_device, resume_device
from jobs.services.lifecycle import NotPossible


class DrainForm(forms.Form):
    """When and why; ``cleaned_data["when"]`` is ``after`` or ``now``, and not asked of a device that runs nothing."""

    when = forms.ChoiceField(
        label=gettext_lazy("When"),
        choices=(
            ("after", gettext_lazy("After the job that runs on it")),
            ("now", gettext_lazy("Now: that job saves a checkpoint and goes back to the queue")),
        ),
        widget=UnfoldAdminRadioSelectWidget,
    )
    reason = forms.CharField(
        label=gettext_lazy("Why"),
        max_length=200,
        widget=UnfoldAdminTextInputWidget(attrs={"autofocus": True}),
        help_text=gettext_lazy("Everybody whose job waits for this device reads it."),
    )

    def __init__(self, *args: Any, device: Device, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial = {"when": "now" if device.drained_at else "after", "reason": device.drain_reason}
        if device.attempt is None:
            del self.fields["when"]


@require_http_methods(["GET", "POST"])
def drain(request: HttpRequest, object_id: int) -> HttpResponse:
    """Ask when and why, then let nothing new start on a device."""
    require_operator(request)
    device = get_object_or_404(Device.objects.select_related("attempt__job"), pk=object_id)
    form = DrainForm(request.POST or None, device=device)
    if request.method == "POST" and form.is_valid():
        asked: dict[str, Any] = form.cleaned_data
        wishes = {"reason": asked["reason"], "now": asked.get("when") == "now"}
        return _attempted(request, device, drain_device, _("Nothing new starts on %(device)s."), **wishes)
    page = {**admin.site.each_context(request), "opts": Device._meta, "device": device, "form": form}
    title = _("Drain %(device)s?") % {"device": device}
    return TemplateResponse(request, "jobs/drain.html", {**page, "title": title})


@require_POST
def resume(request: HttpRequest, object_id: int) -> HttpResponse:
    """Let jobs start on a drained device again."""
    require_operator(request)
    device = get_object_or_404(Device, pk=object_id)
    return _attempted(request, device, resume_device, _("Jobs may start on %(device)s again."))


def _attempted(
    request: HttpRequest, device: Device, verb: Callable[..., None], told: str, **wishes: Any
) -> HttpResponse:
    try:
        verb(device, by=signed_in(request), **wishes)
    except NotPossible as refused:
        messages.warning(request, str(refused).capitalize() + ".")
    else:
        messages.success(request, told % {"device": device})
    return HttpResponseRedirect(reverse("admin:jobs_device_changelist"))
