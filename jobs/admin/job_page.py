"""The page of one job: everything about it, read-only."""

import shlex
from dataclasses import dataclass
from itertools import chain
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import get_language
from django.views.decorators.http import require_GET

from jobs.admin.job_data import newest_sample, samples_context
from jobs.admin.job_header import header_context
from jobs.admin.job_log import LIMIT, log_size
from jobs.forms.config_form import GROUP_TITLES
from jobs.forms.parameter_field import parameter_text
from jobs.models import Job
from trainers.configs import TRAINING_TYPES, TrainConfig, about

SIDE_BY_SIDE = (("eval_before", "eval_after"), ("first", "last"))


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One row of the table of parameters."""

    group: str
    name: str
    label: str
    value: str
    changed: bool
    default: str = ""


@require_GET
def show_job(request: HttpRequest, job: Job) -> HttpResponse:
    """Answer with the page."""
    size = log_size(job)
    context = {
        **admin.site.each_context(request),
        **header_context(request, job),
        **samples_context(job, ""),
        "title": str(job),
        "opts": Job._meta,
        "command": shlex.join(job.command),
        "parameters": parameters(job),
        "known_type": job.training_type in TRAINING_TYPES,
        "log_size": size,
        "log_start": max(size - LIMIT, 0),
        "newest_sample": newest_sample(job),
        "attempts": [(a, shlex.join(a.command)) for a in job.attempts.select_related("worker", "device")],
        "events": job.events.select_related("actor"),
        "artifacts": job.artifacts.all(),
        "dependents": job.dependents.all(),
        "result": result_rows(job.result),
    }
    return TemplateResponse(request, "jobs/job_page.html", context)


def parameters(job: Job) -> list[Parameter]:
    """Return the parameters as they were submitted, also those that no longer exist."""
    config_class = TRAINING_TYPES.get(job.training_type)
    rows = [_parameter(config_class, name, value) for name, value in job.params.items()]
    order = {str(title): n for n, title in enumerate(GROUP_TITLES.values())}
    return sorted(rows, key=lambda row: order.get(row.group, len(order)))


def _parameter(config_class: type[TrainConfig] | None, name: str, value: Any) -> Parameter:
    field = config_class.model_fields.get(name) if config_class else None
    if field is None:
        return Parameter(group="", name=name, label="", value=parameter_text(value), changed=False)
    told = about(field)
    return Parameter(
        group=str(GROUP_TITLES[told.group]),
        name=name,
        label=told.label_zh if (get_language() or "").startswith("zh") else told.label,
        value=parameter_text(value),
        changed=value != field.default,
        default=parameter_text(field.default),
    )


def result_rows(result: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what ``result.json`` says, one line per value; what was first and last stand side by side."""
    rows = []
    for name, value in result.items():
        if isinstance(value, dict) and name not in chain(*SIDE_BY_SIDE):
            rows += [(f"{name} {key}", _short(inner)) for key, inner in value.items()]
        elif value is not None and not isinstance(value, dict):
            rows.append((name, _short(value)))
    measured: dict[str, str] = {}
    for before, after in SIDE_BY_SIDE:  # evaluations stand among the metrics, too
        first, last = result.get(before) or {}, result.get(after) or {}
        for name in first | last:
            measured.setdefault(name, f"{_short(first.get(name, '–'))} → {_short(last.get(name, '–'))}")
    return [*rows, *measured.items()]


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
