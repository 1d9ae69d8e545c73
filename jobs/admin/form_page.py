"""What the job form's page and the saved configuration's page share: the type that is shown and what fills it."""

from collections.abc import Mapping
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse

from jobs.admin.permissions import may_see, number, signed_in
from jobs.forms import ConfigForm
from jobs.forms.prefill import DEFAULT_TYPE, Prefill, from_config, from_job, kept_typing, usable_configs
from jobs.models import Job
from trainers.configs import TRAINING_TYPES, TrainConfig


def asked_prefill(request: HttpRequest) -> Prefill:
    """Return what ``?config=``, ``?clone=`` or ``?_type=`` asks the form to open with."""
    query = request.GET
    if query.get("config"):
        return from_config(get_object_or_404(usable_configs(signed_in(request)), pk=number(query["config"])))
    if query.get("clone"):
        if not may_see(request.user):
            raise PermissionDenied
        return from_job(get_object_or_404(Job, pk=number(query["clone"])))
    return Prefill(config_class=named_type(query.get("_type", DEFAULT_TYPE)))


def named_type(name: str) -> type[TrainConfig]:
    """Return a training type's class.

    Raises:
        SuspiciousOperation: there is none of this name; answered with status 400.
    """
    if name not in TRAINING_TYPES:
        raise SuspiciousOperation(f"unknown training type {name!r}")
    return TRAINING_TYPES[name]


def chosen_type(data: Mapping[str, str]) -> type[TrainConfig]:
    """Return the type that a posted form names."""
    return named_type(data.get("training_type", ""))


def retyped(request: HttpRequest) -> Prefill | None:
    """Return what to show when the type was changed, or ``None`` when the form is of the chosen type."""
    data = request.POST
    chosen = chosen_type(data)
    shown = named_type(data.get("shown_type", chosen.type_name))
    if "_reload" not in data and shown is chosen:
        return None
    return kept_typing(data, shown, chosen)


def tell(request: HttpRequest, prefill: Prefill) -> None:
    """Show what the reader must know of a prefilled form."""
    for warning in prefill.warnings:
        messages.warning(request, warning)
    if prefill.note:
        messages.info(request, prefill.note)


def show_form(
    request: HttpRequest, form: ConfigForm, *, model: type[Model], title: str, template: str, **context: Any
) -> HttpResponse:
    """Answer with the page of a form."""
    types = [(name, config_class.title) for name, config_class in TRAINING_TYPES.items()]
    page = {
        **admin.site.each_context(request),
        "title": title,
        "opts": model._meta,
        "form": form,
        "config_class": form.config_class,
        "training_types": types,
        "saved_configs": usable_configs(signed_in(request)),
        **context,
    }
    return TemplateResponse(request, template, page)
