"""The page of a saved configuration: the same form as a job's."""

from dataclasses import replace

from django.contrib import messages
from django.contrib.admin.models import ADDITION, CHANGE, LogEntry
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _

from jobs.admin.form_page import asked_prefill, chosen_type, retyped, show_form, tell
from jobs.admin.permissions import signed_in
from jobs.forms import TrainingConfigForm, training_config_form
from jobs.forms.prefill import Prefill, from_config
from jobs.models import Job, TrainingConfig


def add_config(request: HttpRequest) -> HttpResponse:
    """Show an empty or a filled form, or keep what was posted as the person's own."""
    return _edited(request, TrainingConfig(owner=signed_in(request)), title=_("Add training config"), action=ADDITION)


def change_config(request: HttpRequest, saved: TrainingConfig, *, may_edit: bool) -> HttpResponse:
    """Show a saved configuration, or keep what was changed."""
    if request.method == "POST" and not may_edit:
        raise PermissionDenied
    return _edited(request, saved, title=str(saved), action=CHANGE, may_edit=may_edit)


def _edited(
    request: HttpRequest, saved: TrainingConfig, *, title: str, action: int, may_edit: bool = True
) -> HttpResponse:
    prefill = retyped(request) if request.method == "POST" else _opened(request, saved)
    if prefill is None:
        form = training_config_form(chosen_type(request.POST))(request.POST, instance=saved, person=signed_in(request))
        if form.is_valid():
            return _kept(request, form, action)
        return _page(request, form, saved, title, may_edit)
    tell(request, prefill)
    if prefill.initial.get("start_from", Job.StartFrom.RULE) != Job.StartFrom.RULE:
        messages.warning(request, _("A config does not say what to start from; choose that when a job is submitted."))
    form = training_config_form(prefill.config_class)(
        initial=prefill.initial, instance=saved, person=signed_in(request)
    )
    return _page(request, form, saved, title, may_edit)


def _opened(request: HttpRequest, saved: TrainingConfig) -> Prefill:
    if not saved.pk:
        return asked_prefill(request)
    prefill = from_config(saved)
    own = {"config_name": saved.name, "note": saved.note, "team": saved.owner is None}
    return replace(prefill, initial=prefill.initial | own, note="")


def _kept(request: HttpRequest, form: TrainingConfigForm, action: int) -> HttpResponse:
    saved = form.save()
    told = str(saved.params)
    LogEntry.objects.log_actions(signed_in(request).pk, [saved], action, change_message=told, single_object=True)
    messages.success(request, _("“%(name)s” is saved.") % {"name": saved})
    return HttpResponseRedirect(reverse("admin:jobs_trainingconfig_changelist"))


def _page(
    request: HttpRequest, form: TrainingConfigForm, saved: TrainingConfig, title: str, may_edit: bool
) -> HttpResponse:
    return show_form(
        request,
        form,
        model=TrainingConfig,
        title=title,
        template="jobs/config_form.html",
        saved=saved,
        may_edit=may_edit,
        save_label=_("Save"),
    )
