"""Write down who did what."""

from django.contrib.auth.models import User

from jobs.models import Event, Job


def record(job: Job | None, kind: str, *, by: User | None = None, detail: str = "") -> None:
    """Add one event, to the job's history if it is about one; ``by`` is empty when the queue itself acted."""
    Event.objects.create(job=job, actor=by, kind=kind, detail=detail[:500])
