"""A host's disk: what is free on it, and the removal of files that a retention rule gave up."""

import contextlib
import logging
import os
import shutil
import stat
from pathlib import Path

from django.conf import settings

from jobs.services.disk import note_disk

logger = logging.getLogger(__name__)


def report_disk(host: str, *, home: Path | None = None) -> None:
    """Write down what is free on the disk of this host's state folder; a disk that cannot be asked is unknown."""
    folder = home or Path(settings.NIGHTSHIFT_HOME)
    try:
        usage = shutil.disk_usage(folder)
    except OSError as error:
        logger.warning("the disk of %s cannot be measured: %s", folder, error)
        note_disk(host, free=0, total=0, place=str(folder))
    else:
        note_disk(host, free=usage.free, total=usage.total, place=str(folder))


def folder_bytes(folder: Path) -> int:
    """Return the size of all files under ``folder``; links are not followed, and what vanishes is left out."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                found = os.lstat(os.path.join(parent, name))
                total += found.st_size if stat.S_ISREG(found.st_mode) else 0
    return total
