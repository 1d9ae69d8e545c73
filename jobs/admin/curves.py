"""The points of a job's curves: few enough to draw, however long the run."""

from typing import Any

from jobs.models import Job

LIMIT = 1000
EVALUATION = "eval/greedy_accuracy"


def curve_points(job: Job, *, after: int) -> list[dict[str, Any]]:
    """Return the logged values after a step, at most a thousand points; evaluations are kept first."""
    rows = job.metrics.filter(step__gt=after).order_by("step")
    steps = list(rows.values_list("step", flat=True))
    if len(steps) > LIMIT:
        evaluations = thinned(list(rows.filter(values__has_key=EVALUATION).values_list("step", flat=True)), LIMIT // 2)
        steps = sorted({*evaluations, *thinned(steps, LIMIT - len(evaluations))})
    found: list[dict[str, Any]] = []
    for start in range(0, len(steps), 500):  # SQLite bounds the number of values in one query
        found += [dict(row) for row in rows.filter(step__in=steps[start : start + 500]).values("step", "values")]
    return found


def thinned(steps: list[int], limit: int) -> list[int]:
    """Return at most ``limit`` of the steps, evenly spaced, the first and the last among them."""
    if len(steps) <= limit:
        return steps
    return [steps[round(n * (len(steps) - 1) / (limit - 1))] for n in range(limit)]
