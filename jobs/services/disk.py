"""How much a job will write, and when a host has too little room."""

from jobs.models import Job


def expected_bytes(job: Job) -> int:
    """Return what the job's checkpoint and weights are expected to take on its host's disk."""
    return 0
