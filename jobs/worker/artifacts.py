"""Register the files of a finished run, and bring them to where everybody can download them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from django.core.files import File
from django.core.files.storage import Storage

from jobs.models import Artifact, Attempt
from jobs.storage import WebRefused, storage_for
from jobs.worker.outcome import Asked, Ending, Wish
from jobs.worker.patience import GaveUp, keep_trying
from jobs.worker.run_folder import add_line

KEPT = ("model/**/*", "result.json", "config.json", "log.txt")


def bring_results(
    attempt: Attempt, folder: Path, ending: Ending, *, fenced: Callable[[], bool], wished: Callable[[], Wish | None]
) -> tuple[Ending, list[Artifact]]:
    """Upload what a success left, with its rows; when that cannot be, return how the attempt ends instead."""

    def stopped() -> bool:
        wish = wished()
        return fenced() or (wish is not None and wish.asked in (Asked.CANCEL, Asked.DRAIN))

    try:
        return ending, upload(attempt, folder, stopped=stopped, note=partial(add_line, folder))
    except (GaveUp, WebRefused) as error:
        wish, outcome = wished(), Attempt.Outcome
        cause = f"the results are kept on {attempt.worker.host if attempt.worker else 'its host'}: {error}"
        if wish is not None and wish.asked is Asked.CANCEL:
            return Ending(outcome=outcome.CANCELLED, cause=cause), []
        if isinstance(error, WebRefused):
            return Ending(outcome=outcome.FAILED, cause=cause), []
        drained = wish is not None and wish.asked is Asked.DRAIN
        return Ending(outcome=outcome.DRAINED if drained else outcome.LOST, cause=cause, again=True), []


def upload(
    attempt: Attempt, folder: Path, *, stopped: Callable[[], bool], note: Callable[[str], None] = lambda _: None
) -> list[Artifact]:
    """Bring the run's files to the artifacts storage unless they lie there already; return their unsaved rows.

    Raises:
        GaveUp, WebRefused: the web was away for too long, or takes none; the files are still in ``folder``.
    """
    storage = storage_for(attempt)
    files = {path for pattern in KEPT for path in folder.glob(pattern) if path.is_file()}
    rows = []
    for path in sorted(files, key=lambda path: (path.name == "log.txt", path)):  # the log last: ``note`` writes there
        row = Artifact(job=attempt.job, path=path.relative_to(folder).as_posix(), size=path.stat().st_size)
        if not is_same(storage, row.storage_name, path):
            keep_trying(partial(_replace, storage, row.storage_name, path), stopped, note)
        rows.append(row)
    return rows


def register(rows: list[Artifact]) -> None:
    """Save the rows; a file of an earlier attempt keeps its row with the new size."""
    Artifact.objects.bulk_create(rows, update_conflicts=True, unique_fields=["job", "path"], update_fields=["size"])


def is_same(storage: Storage, name: str, path: Path) -> bool:
    """Tell whether the storage keeps ``name`` at this very path."""
    try:
        return Path(storage.path(name)).resolve() == path.resolve()
    except NotImplementedError:  # a storage without local files
        return False


def _replace(storage: Storage, name: str, path: Path) -> None:
    if storage.get_available_name(name) != name:  # a storage that would keep both
        storage.delete(name)
    with path.open("rb") as file:
        storage.save(name, File(file))
