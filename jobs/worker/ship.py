"""Write what a run folder gained to the database, each batch in one transaction that the lease guards."""

import json
import zlib
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from jobs.models import Attempt, Job, LogChunk, Metric, Sample
from jobs.services.attempts import Fenced
from jobs.worker.disk import folder_bytes
from jobs.worker.tail import LogTail, RowTail

LONGEST_CHUNK = 262_144  # bytes of log in one row
ROWS = 500


@dataclass
class Load:
    """What is written together."""

    log_offset: int = 0
    log: bytes = b""
    metrics: list[dict[str, Any]] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    checkpoint_step: int | None = None

    def __bool__(self) -> bool:
        return bool(self.log or self.metrics or self.samples or self.checkpoint_step is not None)


class Shipper:
    """Follow one run folder for one attempt."""

    def __init__(self, attempt: Attempt, folder: Path, *, only_new: bool = True) -> None:
        self.attempt = attempt
        self.folder = folder
        self._log, self._log_shift = _log_tail(attempt.job, folder / "log.txt")
        self._metrics = RowTail(folder / "metrics.jsonl", only_new=only_new)
        self._samples = RowTail(folder / "samples.jsonl", only_new=only_new)
        self._metric_backlog: list[dict[str, Any]] = []
        self._sample_backlog: list[Sample] = []
        self._sample_counts: Counter[tuple[int, str]] = Counter()
        self._checkpoint_step = attempt.job.checkpoint_step
        self._last_values = dict(attempt.job.last_values)
        self._pending = Load()

    def ship(self) -> bool:
        """Renew the lease and write one load; tell whether there was one.

        Raises:
            Fenced: the lease is another's; nothing was written.
        """
        self._pending = self._pending or self._gather()
        load = self._pending
        with transaction.atomic():
            self._update_job(load)
            self._write_rows(load)
        self._pending = Load()
        self._checkpoint_step = self._checkpoint_step if load.checkpoint_step is None else load.checkpoint_step
        return bool(load)

    def has_news(self) -> bool:
        """Tell whether there is something to write."""
        self._pending = self._pending or self._gather()
        return bool(self._pending)

    def give_up_load(self) -> None:
        """Leave out what could not be written, so that the rest can follow."""
        self._pending = Load()

    def _gather(self) -> Load:
        offset = self._log.position + self._log_shift
        log = self._log.read(LONGEST_CHUNK)
        self._metric_backlog += filter(_is_metric, self._metrics.read()[0])
        self._sample_backlog += self._numbered(*self._samples.read())
        load = Load(offset, log, self._metric_backlog[:ROWS], self._sample_backlog[:ROWS], self._new_checkpoint())
        del self._metric_backlog[:ROWS], self._sample_backlog[:ROWS]
        return load

    def _numbered(self, rows: list[dict[str, Any]], from_start: bool) -> list[Sample]:
        if from_start:
            self._sample_counts.clear()
        samples = []
        for row in rows:
            place = (row["step"], str(row.get("kind", Sample.Kind.TRAIN)))
            texts = {"prompt": str(row.get("prompt", "")), "completions": row.get("completions", [])}
            index, answer = self._sample_counts[place], row.get("answer")
            samples.append(
                Sample(job=self.attempt.job, step=place[0], kind=place[1], index=index, answer=answer, **texts)
            )
            self._sample_counts[place] += 1
        return samples

    def _new_checkpoint(self) -> int | None:
        try:
            step = int(json.loads((self.folder / "checkpoint" / "meta.json").read_bytes())["step"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return step if step != self._checkpoint_step else None

    def _update_job(self, load: Load) -> None:
        changes: dict[str, Any] = {"lease_until": timezone.now() + timedelta(seconds=settings.NIGHTSHIFT_LEASE)}
        if load.metrics:
            for row in load.metrics:
                self._last_values |= row["values"]
            newest = load.metrics[-1]
            changes |= {"step": newest["step"], "last_values": self._last_values}
            changes |= {"total_steps": newest["total_steps"]} if "total_steps" in newest else {}
        if load.checkpoint_step is not None:
            worker = self.attempt.worker
            changes |= {"checkpoint_step": load.checkpoint_step, "checkpoint_host": worker.host if worker else ""}
            changes |= {"disk_bytes": folder_bytes(self.folder)}
        held = Job.objects.filter(pk=self.attempt.job_id, lease_token=self.attempt.token, status=Job.Status.RUNNING)
        if not held.update(**changes):
            raise Fenced(f"attempt {self.attempt} no longer holds the lease")

    def _write_rows(self, load: Load) -> None:
        if load.log:
            LogChunk.objects.create(
                job=self.attempt.job, offset=load.log_offset, length=len(load.log), data=zlib.compress(load.log)
            )
        Metric.objects.bulk_create(
            self._merged(load.metrics),
            update_conflicts=True,
            unique_fields=["job", "step"],
            update_fields=["time", "values"],
        )
        Sample.objects.bulk_create(
            load.samples,
            update_conflicts=True,
            unique_fields=["job", "step", "kind", "index"],
            update_fields=["prompt", "answer", "completions"],
        )

    def _merged(self, rows: list[dict[str, Any]]) -> list[Metric]:
        """Join the lines of one step, such as a training step and its evaluation."""
        steps = [row["step"] for row in rows]
        job = self.attempt.job
        merged = {row.step: row for row in Metric.objects.filter(job=job, step__in=steps)}
        for row in rows:
            time = datetime.fromtimestamp(row["time"], UTC)
            metric = merged.setdefault(row["step"], Metric(job=job, step=row["step"], values={}))
            metric.time, metric.values = time, metric.values | row["values"]
        return list(merged.values())


def _is_metric(row: dict[str, Any]) -> bool:
    """Tell whether a row has what a metric needs: a time, a number of steps, and numbers by name."""
    values = row.get("values")
    numbers = [row.get("time"), row.get("total_steps", 0), *(values.values() if isinstance(values, dict) else [None])]
    return all(isinstance(number, int | float) for number in numbers)


def _log_tail(job: Job, path: Path) -> tuple[LogTail, int]:
    """Return the log from what the database lacks; on another host than last time, the whole of it, behind the rest."""
    last = LogChunk.objects.filter(job=job).order_by("offset").last()
    known = last.offset + last.length if last else 0
    size = path.stat().st_size if path.exists() else 0
    shift = max(0, known - size)
    return LogTail(path, known - shift), shift
