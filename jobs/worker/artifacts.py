"""Register the files of a finished run, and bring them to where everybody can download them."""

from pathlib import Path

from django.core.files import File
from django.core.files.storage import Storage, storages

from jobs.models import Artifact, Job

KEPT = ("model/**/*", "result.json", "config.json", "log.txt")


def upload(job: Job, folder: Path) -> list[Artifact]:
    """Copy the run's files to the artifacts storage unless they lie there already; return their unsaved rows."""
    storage = storages["artifacts"]
    files = sorted({path for pattern in KEPT for path in folder.glob(pattern) if path.is_file()})
    rows = [Artifact(job=job, path=path.relative_to(folder).as_posix(), size=path.stat().st_size) for path in files]
    for row, path in zip(rows, files, strict=True):
        if not _is_there(storage, row.storage_name, path):
            _replace(storage, row.storage_name, path)
    return rows


def register(rows: list[Artifact]) -> None:
    """Save the rows; a file of an earlier attempt keeps its row with the new size."""
    Artifact.objects.bulk_create(rows, update_conflicts=True, unique_fields=["job", "path"], update_fields=["size"])


def _is_there(storage: Storage, name: str, path: Path) -> bool:
    try:
        return Path(storage.path(name)).resolve() == path.resolve()
    except NotImplementedError:  # a storage without local files
        return False


def _replace(storage: Storage, name: str, path: Path) -> None:
    if storage.exists(name):
        storage.delete(name)
    with path.open("rb") as file:
        storage.save(name, File(file))
