"""Jobs in a terminal: one line each while they run, one table when they have ended."""

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from jobs.models import Job, LogChunk
from jobs.services.reasons import waiting_reasons
from jobs.stack.demo_batch import ACCURACY

PLAIN_INTERVAL = 5.0  # seconds between lines where no terminal can rewrite them
SHOWN = (("loss", "loss", "{:.4f}"), ("reward", "reward", "{:.3f}"), (ACCURACY, "greedy accuracy", "{:.1%}"))
PAIRS_ACCURACY = "eval/accuracy"  # of a reward model: how often it prefers the better completion
COLUMNS = ("job", "type", "name", "status", "steps", "reward", "held-out accuracy, greedy", "seconds")
LOG_TAIL = 30  # lines


class Board:
    """One line per job, rewritten in place on a terminal and printed now and then elsewhere."""

    def __init__(self, write: Callable[[str], Any], *, live: bool | None = None) -> None:
        self.write = write
        self.live = sys.stdout.isatty() if live is None else live
        self.drawn: list[str] = []
        self.drawn_at = float("-inf")

    def show(self, jobs: Sequence[Job]) -> None:
        """Draw the jobs as they stand, if they changed."""
        lines = progress_lines(jobs)
        if lines == self.drawn or (not self.live and time.monotonic() - self.drawn_at < PLAIN_INTERVAL):
            return
        if self.live:
            up = f"\x1b[{len(self.drawn)}A" if self.drawn else ""
            self.write(up + "".join(f"\x1b[2K{line}\n" for line in lines))
        else:
            self.write("".join(f"{line}\n" for line in lines if line not in self.drawn))
        self.drawn, self.drawn_at = lines, time.monotonic()

    def say(self, line: str) -> None:
        """Print a line between the drawings."""
        self.write(f"{line}\n")
        self.drawn = []


def progress_lines(jobs: Sequence[Job]) -> list[str]:
    """Return one line per job: where it stands, its newest values, or why it waits."""
    reasons = waiting_reasons(jobs)
    return [f"job {job.pk} {job.title:<6} {_standing(job, reasons.get(job.pk, ''))}" for job in jobs]


def table(jobs: Sequence[Job]) -> str:
    """Return what became of the jobs."""
    rows = [COLUMNS, *(_row(job) for job in jobs)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def log_tail(job: Job) -> str:
    """Return the end of a job's log under a heading."""
    status = f"job {job.pk} ({job.title}) {job.get_status_display().lower()}: {job.cause or 'no cause recorded'}"
    return f"{status}\n{last_lines(job, LOG_TAIL) or '(it has no log)'}"


def last_lines(job: Job, count: int) -> str:
    """Return the last lines of a job's log."""
    data = b""
    for chunk in LogChunk.objects.filter(job=job).order_by("-offset").iterator():
        data = chunk.content + data
        if data.count(b"\n") > count:
            break
    return "\n".join(data.decode(errors="replace").splitlines()[-count:])


def _standing(job: Job, reason: str) -> str:
    if reason:
        return f"waits: {reason}"
    steps = f"{job.step}/{job.total_steps}" if job.total_steps else "starting"
    measured = job.last_values
    # The loss of an on-policy step is zero up to rounding and tells nothing beside the reward.
    shown = [item for item in SHOWN if item[0] in measured and not (item[0] == "loss" and "reward" in measured)]
    values = [f"{label} {form.format(measured[key])}" for key, label, form in shown]
    return "  ".join([f"{job.get_status_display().lower():<9} {steps:>9}", *values])


def _row(job: Job) -> tuple[str, ...]:
    result = job.result
    return (
        str(job.pk),
        job.title,
        job.name,
        job.get_status_display().lower(),
        f"{result.get('steps', job.step)}/{result.get('total_steps', job.total_steps)}",
        _from_to(result.get("first"), result.get("last"), "reward", "{:.3f}"),
        _accuracy(result),
        f"{result['seconds']:.0f}" if "seconds" in result else "-",
    )


def _accuracy(result: dict[str, Any]) -> str:
    before, after = result.get("eval_before"), result.get("eval_after")
    if after and PAIRS_ACCURACY in after:
        return f"{_from_to(before, after, PAIRS_ACCURACY, '{:.1%}')} of pairs"
    return _from_to(before, after, ACCURACY, "{:.1%}")


def _from_to(before: dict[str, float] | None, after: dict[str, float] | None, key: str, form: str) -> str:
    ends = [form.format(values[key]) if values and key in values else "-" for values in (before, after)]
    return "-" if ends == ["-", "-"] else " -> ".join(ends)
