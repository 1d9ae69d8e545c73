"""Which other runs' weights a job reads."""

import re
from typing import Any

from jobs.models import Job

RUN_MODEL = re.compile(r"runs/(\d{1,18})/model/?")


def weight_sources(job: Job) -> list[int]:
    """Return the jobs whose weights a job reads: those that its parameters name as ``runs/<job>/model``."""
    return sorted({found for value in job.params.values() if (found := named_run(value)) is not None})


def named_run(value: Any) -> int | None:
    """Return the job whose weights a parameter's value names, if it does."""
    found = RUN_MODEL.fullmatch(value) if isinstance(value, str) else None
    return int(found[1]) if found else None
