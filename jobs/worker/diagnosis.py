"""Explain a failed attempt with what the database knows: the failure patterns, and the job's own parameters."""

import logging
import shutil
from dataclasses import replace
from pathlib import Path

from django.template.defaultfilters import filesizeformat

from jobs.models import Attempt, FailurePattern
from jobs.worker.failure import name_failure
from jobs.worker.link import persist
from jobs.worker.outcome import Ending, Outcome
from trainers.advice import host_memory_advice, memory_advice

LITTLE = 1 << 30  # bytes; a disk with more is not what failed

logger = logging.getLogger(__name__)


def explain(attempt: Attempt, ending: Ending, output: str, *, folder: Path, by_kernel: bool = False) -> Ending:
    """Return the ending with a name and advice where it is a failure; waits while the database is away.

    ``by_kernel`` says that memory ran out beside the GPU. An ending that cannot be explained is returned as it is:
    whatever is wrong here, how the attempt ended is known.
    """
    if ending.outcome not in (Outcome.FAILED, Outcome.OUT_OF_MEMORY):
        return ending
    try:
        patterns: list[FailurePattern] = []
        persist(lambda: patterns.extend(FailurePattern.objects.all()))
        advice = advice_on_memory(attempt, by_kernel=by_kernel)
        return name_failure(ending, output, patterns, memory_advice=advice, place=place_of(attempt, folder))
    except Exception:
        logger.exception("attempt %s: its failure has no name", attempt)
        return replace(ending, advice="")


def advice_on_memory(attempt: Attempt, *, by_kernel: bool) -> str:
    """Return what to change in the job's parameters; the GPU's memory and the machine's are different things."""
    config = attempt.job.config()
    beside_gpu = by_kernel and attempt.device is not None and attempt.device.kind != "cpu"
    return host_memory_advice(config) if beside_gpu else memory_advice(config)


def place_of(attempt: Attempt, folder: Path) -> str:
    """Return the host, and what is left on its disk where that is little."""
    host = f"on {attempt.worker.host}" if attempt.worker else "on this host"
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return host
    return f"{host}, {filesizeformat(free)} free on its disk".replace("\xa0", " ") if free < LITTLE else host
