"""What a form is filled with when it opens: a saved configuration, another job, or what was typed for another type."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from jobs.forms.config_form import NOT_IN_FORMS
from jobs.forms.device_choice import device_value
from jobs.forms.job_form import JOB_FIELDS
from jobs.forms.parameter_field import parameter_text
from jobs.models import Job, TrainingConfig
from trainers.configs import TRAINING_TYPES, TrainConfig

DEFAULT_TYPE = "grpo"
OF_EVERY_TYPE = (*JOB_FIELDS, "config_name", "note", "team")


@dataclass(frozen=True, kw_only=True)
class Prefill:
    """The type, the values and what the reader must know of them."""

    config_class: type[TrainConfig]
    initial: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    note: str = ""


def usable_configs(user: User) -> QuerySet[TrainingConfig]:
    """Return the saved configurations that a person may fill a form with: their own and the team's."""
    return TrainingConfig.objects.filter(Q(owner=user) | Q(owner=None))


def from_config(saved: TrainingConfig) -> Prefill:
    """Return what a saved configuration fills in."""
    return _from_params(saved.training_type, saved.params, note=saved.note)


def from_job(job: Job) -> Prefill:
    """Return what a clone of ``job`` fills in."""
    prefill = _from_asked(job)
    if (parent := job.depends_on) is None or parent.status in (Job.Status.COMPLETED, *Job.UNFINISHED):
        return prefill
    gone = _("Job %(id)d ended without success, so the new job does not wait for it.") % {"id": parent.pk}
    return replace(prefill, warnings=[*prefill.warnings, gone])


def from_waiting(job: Job) -> Prefill:
    """Return what the form that edits ``job`` opens with."""
    prefill = _from_asked(job)
    return replace(prefill, initial=prefill.initial | {"not_before": job.not_before})


def kept_typing(data: Mapping[str, str], shown: type[TrainConfig], chosen: type[TrainConfig]) -> Prefill:
    """Return what was typed in the fields that both types have; the rest takes the defaults of the chosen type."""
    initial: dict[str, Any] = {
        name: data[name] for name in (*JOB_FIELDS, "config_name", "note", "team") if name in data
    }
    for name in set(shown.model_fields) & set(chosen.model_fields) - set(NOT_IN_FORMS):
        if data.get(name, "") not in ("", parameter_text(shown.model_fields[name].default)):
            initial[name] = data[name]
    return Prefill(config_class=chosen, initial=initial)


def _from_asked(job: Job) -> Prefill:
    asked: dict[str, Any] = {
        "name": job.name,
        "start_from": job.start_from,
        "depends_on": job.depends_on_id,
        "dependency_rule": job.dependency_rule,
        "device": device_value(job),
        "device_count": job.device_count,
        "priority": job.priority,
        "window": job.window_id,
        "time_limit": job.time_limit,
    }
    params = {name: value for name, value in job.params.items() if name != "from_resume"}
    if job.start_from != Job.StartFrom.FOLDER:
        params.pop("init_path", None)
    return _from_params(job.training_type, params, asked=asked)


def _from_params(
    type_name: str, params: dict[str, Any], *, asked: dict[str, Any] | None = None, note: str = ""
) -> Prefill:
    config_class = TRAINING_TYPES.get(type_name)
    if config_class is None:
        gone = _("The training type %(type)s no longer exists; nothing was filled in.") % {"type": type_name}
        return Prefill(config_class=TRAINING_TYPES[DEFAULT_TYPE], initial=asked or {}, warnings=[gone])
    initial: dict[str, Any] = dict(asked or {})
    initial |= {name: parameter_text(value) for name, value in params.items() if name in config_class.model_fields}
    if folder := initial.pop("init_path", ""):
        initial |= {"start_folder": folder, "start_from": Job.StartFrom.FOLDER.value}
    warnings = []
    if unknown := sorted(set(params) - set(config_class.model_fields)):
        names = ", ".join(unknown)
        warnings.append(_("These parameters no longer exist and were left out: %(names)s.") % {"names": names})
    return Prefill(config_class=config_class, initial=initial, warnings=warnings, note=note)
