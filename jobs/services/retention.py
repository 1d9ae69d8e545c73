"""Which checkpoints and weights of ended jobs a rule removes; never anything that an unfinished job needs.

A removal is decided here, in the database: from then on the files count as gone. ``jobs.worker.removal`` deletes them,
on every host that has them. Log, metrics, samples, result.json and the published weight file stay.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet, Sum
from django.utils import timezone

from jobs.models import Artifact, Event, Job, RetentionRule
from jobs.services.disk import gigabytes
from jobs.services.events import record
from jobs.services.lifecycle import NotPossible
from jobs.services.needs import needed_jobs

AT_ONCE = 100  # jobs in one transaction
A_DAY = timedelta(days=1)
LONGEST = 365_000  # days; more lie before the first year that a date can have
Removes = RetentionRule.Removes


@dataclass(frozen=True, kw_only=True)
class Removal:
    """One job's files that a rule removes."""

    job: Job
    what: str  # RetentionRule.Removes
    size: int  # bytes, as far as known
    host: str  # where they lie


def removals(rule: RetentionRule) -> list[Removal]:
    """Return what ``rule`` would remove now; nothing is touched."""
    jobs = list(_with_files(rule))
    kept = kept_because(rule, jobs, needed_jobs(), timezone.now())
    return _described(rule, [job for job in jobs if job.pk not in kept])


def apply(rule: RetentionRule, *, by: User | None) -> list[Removal]:
    """Remove what ``rule`` says now, and return it; hosts delete the files soon after."""
    found = removals(rule)
    return [
        removal
        for first in range(0, len(found), AT_ONCE)
        for removal in _remove(rule, found[first : first + AT_ONCE], by=by)
    ]


def apply_due() -> None:
    """Apply each active rule that was not applied within a day; of several janitors one does."""
    now = timezone.now()
    due = Q(applied_at=None) | Q(applied_at__lte=now - A_DAY)
    for rule in RetentionRule.objects.filter(due, active=True):
        if RetentionRule.objects.filter(due, pk=rule.pk, active=True).update(applied_at=now):
            apply(rule, by=None)


def set_keep_files(job: Job, value: bool, *, by: User | None) -> None:
    """Keep a job's checkpoint and weights from every rule, or no longer.

    Raises:
        NotPossible: they were removed already.
    """
    with transaction.atomic():
        changed = Job.objects.filter(pk=job.pk, files_removed_at=None).exclude(keep_files=value)
        if changed.update(keep_files=value):
            told = "keeps its files" if value else "its files may be removed"
            record(job, Event.Kind.EDITED, by=by, detail=told)
    job.refresh_from_db()
    if value and not job.keep_files:
        raise NotPossible(f"the files of job {job.pk} were removed already")


def kept_because(rule: RetentionRule, jobs: Iterable[Job], needed: Mapping[int, int], now: datetime) -> dict[int, str]:
    """Return why ``rule`` keeps the files of ended ``jobs``, by id; what is missing it removes."""
    jobs = sorted(jobs, key=lambda job: (job.finished_at or now, job.pk), reverse=True)
    kept: dict[int, str] = {}
    kept |= {job.pk: f"among the best {rule.keep_best}" for job in _best(rule, jobs)}
    kept |= {job.pk: f"among the last {rule.keep_last}" for job in _last(rule, jobs)}
    young = now - timedelta(days=min(rule.keep_days, LONGEST))
    kept |= {job.pk: f"younger than {rule.keep_days} days" for job in jobs if (job.finished_at or now) > young}
    kept |= {job.pk: "pinned" for job in jobs if job.keep_files}
    kept |= {job.pk: f"job {needed[job.pk]} needs it" for job in jobs if job.pk in needed}
    return kept


def metric_of(job: Job, metric: str) -> float | None:
    """Return the last value of a job's metric: of its last evaluation, of its result, or as it was shipped."""
    for values in (job.result.get("eval_after"), job.result.get("last"), job.last_values):
        value = values.get(metric) if isinstance(values, dict) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    return None


def _with_files(rule: RetentionRule) -> QuerySet[Job]:
    """Return the ended jobs of the rule's type that still have what it removes."""
    jobs = Job.objects.filter(status__in=Job.FINISHED).select_related("owner", "worker").order_by("pk")
    if rule.training_type:
        jobs = jobs.filter(training_type=rule.training_type)
    if rule.removes == Removes.CHECKPOINTS:
        return jobs.filter(checkpoint_step__isnull=False, files_removed="")
    weights = Artifact.objects.filter(path__startswith="model/").values("job")
    has_some = Q(checkpoint_step__isnull=False) | Q(pk__in=weights)
    return jobs.filter(has_some).exclude(files_removed=Removes.ALL)


def _last(rule: RetentionRule, jobs: Iterable[Job]) -> list[Job]:
    groups = defaultdict(list)
    for job in jobs:  # newest first
        groups[job.owner_id, job.training_type].append(job)
    return [job for group in groups.values() for job in group[: rule.keep_last]]


def _best(rule: RetentionRule, jobs: Iterable[Job]) -> list[Job]:
    groups = defaultdict(list)
    for job in jobs:
        if rule.metric and (value := metric_of(job, rule.metric)) is not None:
            groups[job.training_type, job.params.get("data_path")].append((value, job))
    sign = 1 if rule.lower_is_better else -1
    ranked = [sorted(group, key=lambda pair: sign * pair[0]) for group in groups.values()]  # of equals the newest
    return [job for group in ranked for _, job in group[: rule.keep_best]]


def _described(rule: RetentionRule, jobs: list[Job]) -> list[Removal]:
    sizes = Artifact.objects.filter(job__in=[job.pk for job in jobs]).order_by().values("job")
    every = dict(sizes.annotate(size=Sum("size")).values_list("job", "size"))
    model = dict(sizes.filter(path__startswith="model/").annotate(size=Sum("size")).values_list("job", "size"))
    found = []
    for job in jobs:
        checkpoint = max(job.disk_bytes - every.get(job.pk, 0), 0) if job.checkpoint_step is not None else 0
        weights = model.get(job.pk, 0) if rule.removes == Removes.ALL else 0
        host = job.checkpoint_host or (job.worker.host if job.worker else "")
        found.append(Removal(job=job, what=rule.removes, size=checkpoint + weights, host=host))
    return found


@transaction.atomic
def _remove(rule: RetentionRule, found: list[Removal], *, by: User | None) -> list[Removal]:
    """Remove what nobody came to need, or pinned, or resumed since it was found."""
    numbers = [removal.job.pk for removal in found]
    list(Job.objects.select_for_update().filter(pk__in=numbers).order_by("pk").values_list("pk"))
    free = {job.pk for job in _with_files(rule).filter(pk__in=numbers, keep_files=False)} - needed_jobs().keys()
    removed = [removal for removal in found if removal.job.pk in free]
    Job.objects.filter(pk__in=free).update(
        files_removed=rule.removes, files_removed_at=timezone.now(), checkpoint_step=None, checkpoint_host=""
    )
    if rule.removes == Removes.ALL:
        Artifact.objects.filter(job__in=free, path__startswith="model/").delete()
    for removal in removed:
        what = f"{rule.get_removes_display()}, {gigabytes(removal.size)} ({rule})"
        record(removal.job, Event.Kind.FILES_REMOVED, by=by, detail=what)
    return removed
