"""Rows that the tests of the queue start from."""

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from jobs.models import Device, Job, Worker
from jobs.services.submission import Submission
from jobs.services.submit import submit_job

SMALL = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "max_steps": 3}


def person(name: str = "ada") -> User:
    """Return the person of that name."""
    return User.objects.get_or_create(username=name)[0]


def queued(
    training_type: str = "sft", *, owner: str = "ada", params: dict[str, Any] | None = None, **wishes: Any
) -> Job:
    """Submit one small job."""
    values = SMALL if params is None else params
    return submit_job(Submission(training_type=training_type, params=values, owner=person(owner), **wishes))


def worker(name: str = "cpu@here", *, kind: str = "cpu", key: str = "cpu:here", seconds_silent: float = 0) -> Worker:
    """Return a worker that was heard of so many seconds ago."""
    device, _ = Device.objects.get_or_create(key=key, defaults={"kind": kind, "host": "here", "name": key})
    heard = timezone.now() - timedelta(seconds=seconds_silent)
    return Worker.objects.create(name=name, host="here", device=device, queue=name, heartbeat_at=heard)
