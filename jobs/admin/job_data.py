"""What the job page fetches while it is open: where the job stands, new points of the curves, samples, files."""

import math
from pathlib import Path
from typing import Any

from django.contrib import messages
from django.core.files.storage import FileSystemStorage, storages
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from jobs.admin.curves import curve_points
from jobs.admin.job_header import header_context
from jobs.admin.permissions import number
from jobs.models import Artifact, Job, Sample

PROMPTS_SHOWN = 50


@require_GET
def live(request: HttpRequest, job: Job) -> JsonResponse:
    """Answer with the header and the points after ``after``; a restart sends all points again."""
    restarts = job.attempts.count()
    same_run = request.GET.get("restarts") == str(restarts)
    after = request.GET.get("after", "-1")
    points = curve_points(job, after=number(after) if same_run and after != "-1" else -1)
    return JsonResponse(
        {
            "header": render_to_string("jobs/job_header.html", header_context(request, job), request=request),
            "finished": job.is_finished,
            "restarts": restarts,
            "fresh": not same_run,
            "points": points,
            "newest_sample": newest_sample(job),
        }
    )


@require_GET
def samples(request: HttpRequest, job: Job) -> HttpResponse:
    """Answer with the prompts and completions of one step."""
    return render(request, "jobs/samples.html", samples_context(job, request.GET.get("at", "")))


def samples_context(job: Job, at: str) -> dict[str, Any]:
    """Return the samples of ``kind:step``, else the newest, and which others there are."""
    choices = list(job.samples.order_by("-step", "kind").values_list("kind", "step").distinct())
    named = {f"{kind}:{step}": (kind, step) for kind, step in choices}
    chosen = at if at in named else next(iter(named), "")
    kind, step = named.get(chosen, ("", -1))
    prompts = list(job.samples.filter(kind=kind, step=step).order_by("index")[: PROMPTS_SHOWN + 1])
    return {
        "job": job,
        "choices": [(value, Sample.Kind(kind).label, step) for value, (kind, step) in named.items()],
        "chosen": chosen,
        "samples": [(sample, by_reward(sample.completions)) for sample in prompts[:PROMPTS_SHOWN]],
        "more": len(prompts) > PROMPTS_SHOWN,
        "shown": PROMPTS_SHOWN,
    }


def by_reward(completions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the completions, the best first; those without a reward last."""

    def reward(completion: dict[str, Any]) -> float:
        value = completion.get("reward")
        return -math.inf if value is None else float(value)

    return sorted(completions, key=reward, reverse=True)


def newest_sample(job: Job) -> str:
    """Return which samples are the newest, as ``kind:step``."""
    newest = job.samples.order_by("-step", "kind").values_list("kind", "step").first()
    return f"{newest[0]}:{newest[1]}" if newest else ""


@require_GET
def artifact(request: HttpRequest, job: Job) -> FileResponse | HttpResponseRedirect:
    """Answer with a file of the run; only files that a row names can be had. The job page says which one is gone."""
    row = get_object_or_404(Artifact, job=job, pk=number(request.GET.get("id", "")))
    storage = storages["artifacts"]
    if isinstance(storage, FileSystemStorage) and not _is_inside(storage, row.storage_name):
        raise Http404("the file lies outside the run folders")
    try:
        content = storage.open(row.storage_name)
    except FileNotFoundError:
        messages.error(request, _("%(file)s is no longer there.") % {"file": row.storage_name})
        return redirect("admin:jobs_job_change", job.pk)
    name = f"job-{job.pk}-{Path(row.path).name}"
    return FileResponse(content, as_attachment=True, filename=name, content_type="application/octet-stream")


def _is_inside(storage: FileSystemStorage, name: str) -> bool:
    return Path(storage.path(name)).resolve().is_relative_to(Path(storage.location).resolve())
