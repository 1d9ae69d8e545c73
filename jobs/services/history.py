"""What the last completed jobs took, to tell by it what waiting and running ones will take."""

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery, Sum, Window
from django.db.models.functions import RowNumber

from jobs.models import Job, Metric

EACH = 5  # jobs that are looked at of a kind, on each kind of device


@dataclass(frozen=True, kw_only=True)
class Past:
    """A completed job: the seconds of all its attempts, its steps, and the device of the last."""

    cost_key: str
    pace_key: str
    device: str
    kind: str
    seconds: float
    steps: int
    pace: float | None  # seconds per step, where one attempt made them all


class History:
    """The last completed jobs that are like an unfinished one, read in one query."""

    def __init__(self) -> None:
        self._costs: dict[str, list[Past]] = defaultdict(list)
        self._paces: dict[str, list[Past]] = defaultdict(list)
        for past in map(_past, _rows()):
            self._costs[past.cost_key].append(past)
            if past.pace is not None:
                self._paces[past.pace_key].append(past)

    def seconds(self, job: Job, steps: int | None, device: tuple[str, str]) -> float | None:
        """Return what a job takes from its start to its end, best on a device of that name, else of that kind."""
        if alike := _best(self._costs.get(job.cost_key, []), *device):
            return _median(alike, lambda past: past.seconds)
        paced = _best(self._paces.get(job.pace_key, []), *device)
        if not paced or not steps:
            return None
        beside = _median(paced, lambda past: past.seconds - (past.pace or 0) * past.steps)  # start-up and last saving
        return max(beside, 0) + steps * _median(paced, lambda past: past.pace or 0)


def _best(pasts: list[Past], device: str, kind: str) -> list[Past]:
    same = [past for past in pasts if past.device == device] or [past for past in pasts if past.kind == kind]
    return (same or pasts)[:EACH]


def _median(pasts: list[Past], value: Callable[[Past], float]) -> float:
    return statistics.median(map(value, pasts))


def _rows() -> Iterable[Mapping[str, Any]]:
    measured = Metric.objects.filter(job=OuterRef("pk"))
    first, last = measured.order_by("step"), measured.order_by("-step")
    return (
        Job.objects.filter(Q(pk__in=_recent("cost_key")) | Q(pk__in=_recent("pace_key")))
        .order_by("-finished_at")
        .values("cost_key", "pace_key", "step", on=F("worker__device__name"), kind=F("worker__device__kind"))
        .annotate(
            ran=Sum(F("attempts__ended_at") - F("attempts__started_at")),
            tries=Count("attempts"),
            began=Subquery(first.values("time")[:1]),
            began_at=Subquery(first.values("step")[:1]),
            ended=Subquery(last.values("time")[:1]),
            ended_at=Subquery(last.values("step")[:1]),
        )
    )


def _recent(key: str) -> QuerySet[Job, Any]:
    """Return the last few completed jobs of each key that an unfinished one has, on each kind of device."""
    wanted = Job.objects.filter(status__in=Job.UNFINISHED).exclude(**{key: ""}).values(key)
    nth = Window(RowNumber(), partition_by=[key, "worker__device__name"], order_by="-finished_at")
    found = Job.objects.filter(status=Job.Status.COMPLETED, **{f"{key}__in": wanted}).annotate(nth=nth)
    return found.filter(nth__lte=EACH).values("pk")


def _past(row: Mapping[str, Any]) -> Past:
    measured = row["tries"] == 1 and row["began"] and row["ended_at"] > row["began_at"]
    return Past(
        cost_key=row["cost_key"],
        pace_key=row["pace_key"],
        device=row["on"] or "",
        kind=row["kind"] or "",
        seconds=row["ran"].total_seconds() if row["ran"] else 0.0,
        steps=row["step"],
        pace=(row["ended"] - row["began"]).total_seconds() / (row["ended_at"] - row["began_at"]) if measured else None,
    )
