"""The admin: the whole of what people see. One file per model, and one per view of the job page."""

from jobs.admin import batch, event, home, job, people, training_config, worker

__all__ = ["batch", "event", "home", "job", "people", "training_config", "worker"]
