"""Which checkpoints and weights of ended jobs a rule removes; never anything that an unfinished job needs."""

from dataclasses import dataclass

from jobs.models import Job, RetentionRule


@dataclass(frozen=True, kw_only=True)
class Removal:
    """One job's files that a rule removes."""

    job: Job
    what: str  # RetentionRule.Removes
    size: int  # bytes, as far as known
    host: str  # where they lie


def removals(rule: RetentionRule) -> list[Removal]:
    """Return what ``rule`` would remove now; nothing is touched."""
    return []
