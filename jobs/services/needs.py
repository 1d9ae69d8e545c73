"""Which ended jobs' files an unfinished job needs, and how a job takes hold of the weights that it starts from.

Retention decides under the lock of a job's row, and looks for needs only then; whoever comes to need the job's weights
takes the same lock before. So of a submission and a removal that meet, one sees the other.
"""

import re
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Q
from django.utils.translation import gettext as _

from jobs.models import Job, RetentionRule
from trainers.paths import PathRefused, resolve_path

# The last one in a path: the state folder may lie in some "runs/2026". More digits no database takes.
RUN = re.compile(r"(?s:.*/)?runs/([0-9]{1,18})(?=/|$)")
BACK = re.compile(r"(?:^|/)\.\.(?:/|$)")


def named_runs(params: Mapping[str, Any]) -> dict[str, int]:
    """Return the job whose run folder each parameter names, as written or by way of links."""
    named = {}
    for name, value in params.items():
        if isinstance(value, str) and (found := _run_in(value)):
            named[name] = int(found[1])
    return named


def needed_jobs() -> dict[int, int]:
    """Return the jobs whose files an unfinished job needs, by id, each with one that needs it.

    That is itself, whose run its parameters name, and its parent unless that succeeded and is only waited for. A
    parent that did not succeed may be resumed, and then needs what it started from in turn.
    """
    rows = _rows(status__in=Job.UNFINISHED)
    needed = {row["pk"]: row["pk"] for row in rows}
    while rows:
        wanted = {number: row["pk"] for row in rows for number in _needs(row) if number not in needed}
        needed |= wanted
        rows = _rows(~Q(status=Job.Status.COMPLETED), pk__in=wanted)
    return needed


def hold_weights(params: Mapping[str, Any], *, start_from: str) -> None:
    """Take hold of the weights that ``params`` name, until the transaction ends: no retention rule removes them then.

    Raises:
        ValidationError: they were removed; by field name.
    """
    named = named_runs(params)
    rows = Job.objects.select_for_update().order_by("pk").filter(pk__in=named.values())
    gone = {row.pk: row for row in rows if row.files_removed == RetentionRule.Removes.ALL}
    wrong = {name: gone[number] for name, number in named.items() if number in gone}
    if wrong:
        from_job = start_from == Job.StartFrom.JOB
        raise ValidationError(
            {"depends_on" if from_job and name == "init_path" else name: [_told(job)] for name, job in wrong.items()}
        )


def _rows(*where: Q, **values: Any) -> list[dict[str, Any]]:
    fields = ("pk", "params", "start_from", "depends_on", "depends_on__status")
    return list(Job.objects.filter(*where, **values).order_by("pk").values(*fields))


def _needs(row: dict[str, Any]) -> set[int]:
    parent = row["depends_on"]
    only_waited_for = row["start_from"] != Job.StartFrom.JOB and row["depends_on__status"] == Job.Status.COMPLETED
    return {*named_runs(row["params"]).values(), *([] if parent is None or only_waited_for else [parent])}


def _told(job: Job) -> str:
    return _("the weights of job %(id)d were removed; train them again, or choose others") % {"id": job.pk}


def _run_in(value: str) -> re.Match[str] | None:
    """Return the run that a path names: as written, unless that leads back out of what it names first."""
    written = RUN.match(value)
    return written if written and not BACK.search(value, written.end()) else _behind_links(value) or written


def _behind_links(value: str) -> re.Match[str] | None:
    if "/" not in value:
        return None
    try:
        return RUN.match(resolve_path(value).as_posix())
    except PathRefused:
        return None
