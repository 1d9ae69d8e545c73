"""The admin: the whole of what people see. One file per model, and one per view of the job page."""

from jobs.admin import (
    batch,
    device,
    event,
    failure_pattern,
    home,
    host,
    job,
    limit,
    people,
    retention_rule,
    training_config,
    window,
    worker,
)

__all__ = [
    "batch",
    "device",
    "event",
    "failure_pattern",
    "home",
    "host",
    "job",
    "limit",
    "people",
    "retention_rule",
    "training_config",
    "window",
    "worker",
]
