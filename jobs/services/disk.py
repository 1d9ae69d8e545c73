"""How much a job will write, and when a host has too little room."""

from functools import lru_cache
from typing import Any

from django.conf import settings
from django.db import transaction

from jobs.models import Event, Host, Job
from jobs.services.events import record
from jobs.services.footprint import Weights, fresh_weights, starting_weights, written_bytes
from jobs.services.wake import wake_workers
from trainers.configs import TRAINING_TYPES, TrainConfig

PAUSED = r"^only [\d.]+ [GM]B free on "  # a pause for want of room; any other is a person's
# fmt: off
COUNTED = (
    "hidden_size", "num_hidden_layers", "use_moe", "num_attention_heads", "num_key_value_heads", "student_hidden_size",
    "student_num_layers", "student_use_moe", "tokenizer_path", "init_path", "lora_rank", "kl_coef", "beta",
)
# fmt: on
ROOM_AGAIN = 1.25  # times the reserve: at its edge a host would pause and resume by turns

Asked = tuple[Any, ...]  # the training type, and a value for each name in COUNTED


def expected_bytes(job: Job) -> int:
    """Return what the job is still expected to write on its host's disk, at the most.

    Where a model folder is not seen from here, the size counts that the parent's parameters name, or else its own.
    """
    try:
        asked = _asked(job)
        total = _written(asked, _weights(job, asked))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return 0  # its parameters are of another version; its trainer will say so, and the others need not wait for it
    return max(total - job.disk_bytes, 0) if job.checkpoint_host else total


def disk_reason(host: Host, job: Job) -> tuple[str, str, str]:
    """Return free bytes, needed bytes and reserve as people read them."""
    return gigabytes(host.disk_free), gigabytes(expected_bytes(job)), gigabytes(settings.NIGHTSHIFT_DISK_RESERVE)


def gigabytes(size: int) -> str:
    """Return ``1.2 GB``; below a tenth of it, MB."""
    return f"{size / 1e9:.1f} GB" if size >= 100_000_000 else f"{size / 1e6:.1f} MB"


def note_disk(name: str, *, free: int, total: int, place: str) -> None:
    """Write a host's disk down; pause the host when less than the reserve is free, resume it when there is room again.

    ``place`` is the folder that was measured; a ``total`` of 0 says that it could not be. Several workers of one host
    may report at once: of two who see the same change one writes the event.
    """
    host = Host.objects.filter(name=name)
    host.update(disk_free=free, disk_total=total)
    reserve = settings.NIGHTSHIFT_DISK_RESERVE
    if total and free < reserve:
        told = f"only {gigabytes(free)} free on {place}; free some space or lower retention"[:200]
        _pause(name, told)
        host.filter(paused_reason__regex=PAUSED).exclude(paused_reason=told).update(paused_reason=told)
    elif not total or free >= ROOM_AGAIN * reserve:
        _resume(name, f"{gigabytes(free)} free on {place}")


@transaction.atomic
def _pause(name: str, told: str) -> None:
    if Host.objects.filter(name=name, paused_reason="").update(paused_reason=told):
        Event.objects.create(kind=Event.Kind.HOST_PAUSED, detail=f"{name}: {told}"[:500])
        for job in Job.objects.filter(status=Job.Status.RUNNING, worker__host=name):
            record(job, Event.Kind.WARNED, detail=f"{told}; a checkpoint may not fit")


@transaction.atomic
def _resume(name: str, told: str) -> None:
    if Host.objects.filter(name=name, paused_reason__regex=PAUSED).update(paused_reason=""):
        Event.objects.create(kind=Event.Kind.HOST_RESUMED, detail=f"{name}: {told}"[:500])
        transaction.on_commit(wake_workers)


def _asked(job: Job) -> Asked:
    """Return what of a job's parameters decides how much it writes: equal for the many jobs of a sweep."""
    return job.training_type, *map(job.params.get, COUNTED)


@lru_cache(maxsize=1024)
def _config(asked: Asked) -> TrainConfig:
    """Return the parameters without validating them: a claim asks this of every waiting job."""
    training_type, *values = asked
    given = {name: value for name, value in zip(COUNTED, values, strict=True) if value is not None}
    return TRAINING_TYPES[training_type].model_construct(**given)


@lru_cache(maxsize=1024)
def _written(asked: Asked, weights: Weights) -> int:
    return written_bytes(_config(asked), weights)


def _weights(job: Job, asked: Asked) -> Weights:
    config = _config(asked)
    found = starting_weights(config)
    if found is None and job.start_from == Job.StartFrom.JOB and job.depends_on is not None:
        return _weights(job.depends_on, _asked(job.depends_on))
    return found or fresh_weights(config)
