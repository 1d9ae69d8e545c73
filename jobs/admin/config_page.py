"""The page of a saved configuration: the same form as a job's."""

from django.contrib import messages
from django.contrib.admin.models import ADDITION, CHANGE, LogEntry
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _

from jobs.admin.form_page import asked_prefill, chosen_type, retyped, show_form, tell
from jobs.forms import TrainingConfigForm, training_config_form
from jobs.forms.prefill import Prefill, from_config
from jobs.models import TrainingConfig


def add_config(request: HttpRequest) -> HttpResponse:
    """Show an empty or a filled form, or keep what was posted as the person's own."""
    assert isinstance(request.user, User)
    return _edited(request, TrainingConfig(owner=request.user), title=_("Add training config"), action=ADDITION)


def change_config(request: HttpRequest, saved: TrainingConfig, *, may_edit: bool) -> HttpResponse:
    """Show a saved configuration, or keep what was changed."""
    if request.method == "POST" and not may_edit:
        raise PermissionDenied
    return _edited(request, saved, title=str(saved), action=CHANGE, may_edit=may_edit)


def _edited(
    request: HttpRequest, saved: TrainingConfig, *, title: str, action: int, may_edit: bool = True
) -> HttpResponse:
    if request.method == "POST" and (prefill := retyped(request)) is None:
        form = training_config_form(chosen_type(request.POST))(
            request.POST, instance=saved, may_share=request.user.is_superuser
        )
        if form.is_valid():
            return _kept(request, form, action)
        return _page(request, form, saved, title, may_edit)
    prefill = prefill if request.method == "POST" else _opened(request, saved)
    tell(request, prefill)
    form = training_config_form(prefill.config_class)(
        initial=prefill.initial, instance=saved, may_share=request.user.is_superuser
    )
    return _page(request, form, saved, title, may_edit)


def _opened(request: HttpRequest, saved: TrainingConfig) -> Prefill:
    prefill = from_config(saved) if saved.pk else asked_prefill(request)
    if saved.pk:
        prefill.initial.update(config_name=saved.name, note=saved.note, team=saved.owner is None)
    return prefill


def _kept(request: HttpRequest, form: TrainingConfigForm, action: int) -> HttpResponse:
    saved = form.save()
    LogEntry.objects.log_actions(
        user_id=request.user.pk,
        queryset=[saved],
        action_flag=action,
        change_message=str(saved.params),
        single_object=True,
    )
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
