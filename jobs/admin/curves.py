"""The points of a job's curves: few enough to draw, however long the run."""

from typing import Any

from jobs.models import Job
from trainers.configs import TRAINING_TYPES

LIMIT = 1000
EVALUATIONS = sorted({metric for config_class in TRAINING_TYPES.values() for metric in config_class.eval_metrics})


def curve_points(job: Job, *, after: int) -> list[dict[str, Any]]:
    """Return the logged values after a step, at most a thousand points; evaluations are kept first."""
    rows = job.metrics.filter(step__gt=after).order_by("step")
    steps = list(rows.values_list("step", flat=True))
    if len(steps) > LIMIT:
        evaluated = rows.filter(values__has_any_keys=EVALUATIONS)
        evaluations = thinned(list(evaluated.values_list("step", flat=True)), LIMIT // 2)
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
