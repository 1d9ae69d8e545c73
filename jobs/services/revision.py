"""Which code a job was submitted with."""

import functools

from trainers import revision


@functools.cache
def code_revision() -> str:
    """Return the revision that this process found first, for it runs on with that code; or nothing."""
    return revision.code_revision() or ""
