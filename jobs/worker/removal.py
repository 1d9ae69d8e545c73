"""Delete from this host's disk what a retention rule gave up.

Every host with a state folder does so by itself: whatever lies there of a removed job, written by it or fetched for a
child, goes. A folder is first set aside, by a rename under the lock of its job's row, so that a job that is resumed
meanwhile finds all of it or nothing. Links are never followed: a link in a run folder is removed itself.
"""

import contextlib
import logging
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.storage import storages
from django.db import connection, transaction

from jobs.models import Job, RetentionRule
from jobs.worker.disk import folder_bytes

CHECKPOINTS = ("checkpoint", "checkpoint.old")
WEIGHTS = ("model", "model.old", "model.tmp", "adapter")
ASIDE = ".removed-"
NUMBER = re.compile(r"[1-9][0-9]{0,17}")  # as ``Job.run_dir`` writes it, and no larger than a database takes
EVERY = 60.0  # seconds

logger = logging.getLogger(__name__)


def keep_clear(
    stopping: Callable[[float], bool],
    lock: AbstractContextManager[Any] = nullcontext(),  # noqa: B008  # it has no state
    *,
    first: Callable[[], object] = lambda: None,
) -> None:
    """Call ``first`` and delete what is due once a minute, until ``stopping``; talk to the database under ``lock``."""
    while not stopping(EVERY):
        try:
            with lock:
                first()
                for root in places():
                    set_aside(root)
            for root in places():  # may take long, and needs no database
                clear(root)
        except Exception as error:  # whatever it is, a thread that ends would never remove anything again
            logger.warning("files were not removed, will try again: %r", error)
        finally:
            connection.close()


def remove_due() -> int:
    """Delete what is due here; return how many folders."""
    for root in places():
        set_aside(root)
    return sum(clear(root) for root in places())


def places() -> list[Path]:
    """Return the folders of this host that hold runs by number: its own, and one that all hosts share."""
    found = {Path(settings.NIGHTSHIFT_HOME) / "runs"}
    with contextlib.suppress(NotImplementedError):  # a storage without local files
        found.add(Path(storages["artifacts"].path("")))
    return sorted(folder for folder in {path.resolve() for path in found} if folder.is_dir())


def set_aside(root: Path) -> int:
    """Rename what is due under ``root``, so that nobody finds it any more; return how many folders."""
    runs = {int(entry.name): Path(entry.path) for entry in _folders(root) if NUMBER.fullmatch(entry.name)}
    holding = [number for number, run in runs.items() if any(_present(run, (*CHECKPOINTS, *WEIGHTS)))]
    removed = Job.objects.filter(pk__in=holding).exclude(files_removed="").values_list("pk", flat=True)
    return sum(_tried(number, runs[number]) for number in removed)


def clear(root: Path) -> int:
    """Delete what was set aside under ``root``, also by a process that ended before it was done."""
    found = [path for run in _folders(root) for path in _aside(run.path)]
    for path in found:
        if path.is_symlink() or not path.is_dir():
            path.unlink(missing_ok=True)
        else:
            shutil.rmtree(path, ignore_errors=True)
    return len(found)


def _tried(number: int, run: Path) -> int:
    try:
        return _set_aside(number, run)
    except OSError as error:  # the others must not wait for a folder that cannot be written
        logger.warning("%s keeps its files: %s", run, error)
        return 0


@transaction.atomic
def _set_aside(number: int, run: Path) -> int:
    job = Job.objects.select_for_update().filter(pk=number, status__in=Job.FINISHED).exclude(files_removed="").first()
    if job is None:
        return 0
    names = CHECKPOINTS if job.files_removed == RetentionRule.Removes.CHECKPOINTS else (*CHECKPOINTS, *WEIGHTS)
    due = [path for path in _present(run, names) if path.lstat().st_mtime >= job.created_at.timestamp()]
    for path in due:
        with contextlib.suppress(FileNotFoundError):  # another worker of this host was faster
            path.rename(run / f"{ASIDE}{path.name}-{uuid.uuid4().hex}")
    if due:
        Job.objects.filter(pk=number).update(disk_bytes=_left(run))
    return len(due)


def _present(run: Path, names: tuple[str, ...]) -> Iterator[Path]:
    return (run / name for name in names if os.path.lexists(run / name))


def _left(run: Path) -> int:
    return folder_bytes(run) - sum(folder_bytes(path) for path in _aside(run))


def _aside(run: str | Path) -> list[Path]:
    try:
        return [Path(entry.path) for entry in os.scandir(run) if entry.name.startswith(ASIDE)]
    except OSError:  # it vanished, or may not be read
        return []


def _folders(root: Path) -> list["os.DirEntry[str]"]:
    return [entry for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False)]
