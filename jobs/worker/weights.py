"""Bring the weights that a job starts from to this host, when another host made them."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from http.client import HTTPException
from pathlib import Path

from django.core.files import File
from django.core.files.storage import Storage

from jobs.models import Artifact, Attempt
from jobs.services.weights import weight_sources
from jobs.storage import BLOCK, WebAway, WebRefused, storage_for
from jobs.worker.artifacts import is_same
from jobs.worker.guard import NO_LOCK
from jobs.worker.outcome import Ending, Wish, classify
from jobs.worker.patience import GaveUp, keep_trying
from jobs.worker.run_folder import OWNER, add_line, owner_of, set_aside
from trainers.paths import resolve_path

Note = Callable[[str], None]
Stopped = Callable[[], bool]


class NoWeights(Exception):
    """The weights are nowhere; the message says whose."""


def missing_weights(
    attempt: Attempt, folder: Path, *, fenced: Stopped, wished: Callable[[], Wish | None]
) -> Ending | None:
    """Bring the weights that the job starts from; return how the attempt ends without them, if it has to."""
    try:
        bring_weights(attempt, stopped=lambda: fenced() or wished() is not None, note=partial(add_line, folder))
    except NoWeights as missing:
        return Ending(outcome=Attempt.Outcome.FAILED, cause=str(missing))
    except GaveUp as error:
        if (wish := wished()) is not None:
            return classify(NO_LOCK, folder, wish=wish)  # as one whose trainer never came to start
        return Ending(outcome=Attempt.Outcome.LOST, cause=f"the weights to start from: {error}", again=True)
    return None


def bring_weights(attempt: Attempt, *, stopped: Stopped, note: Note) -> None:
    """Fetch every ``runs/<job>/model`` that the attempt's job names and this host lacks.

    Raises:
        NoWeights: they are not in the artifacts storage.
        GaveUp: ``stopped`` said so, or the web was away for too long.
    """
    storage = storage_for(attempt)
    for number in weight_sources(attempt.job):
        model = resolve_path(f"runs/{number}/model")
        if is_same(storage, f"{number}/model", model) or is_current(model, number):
            continue
        rows = list(Artifact.objects.filter(job=number, path__startswith="model/"))
        if not rows and model.exists():
            continue
        if not rows:
            raise NoWeights(f"job {number} has no weights to start from: it left none, or they were removed")
        _fetch(storage, rows, model, number, stopped=stopped, note=note)


def is_current(model: Path, number: int) -> bool:
    """Tell whether the weights lie here, and no later attempt of that job made others on another host."""
    made_by = owner_of(model) or owner_of(model.parent)
    newest = Attempt.objects.filter(job=number, outcome=Attempt.Outcome.COMPLETED).order_by("-number").first()
    return model.exists() and (not made_by or newest is None or newest.number <= made_by)


def _fetch(
    storage: Storage, rows: Sequence[Artifact], model: Path, number: int, *, stopped: Stopped, note: Note
) -> None:
    size = sum(row.size for row in rows) / 1e6
    note(f"the weights of job {number} are not on this host: fetching {len(rows)} files, {size:.1f} MB")
    began = time.monotonic()
    model.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=model.parent, prefix=".fetching-") as folder:
        fetched = Path(folder) / "model"
        for row in rows:
            try:
                keep_trying(partial(_copy, storage, row, fetched, stopped), stopped, note)
            except (FileNotFoundError, WebRefused) as error:
                raise NoWeights(f"the weights of job {number} cannot be had: {error}") from None
        newest = Attempt.objects.filter(job=number, outcome=Attempt.Outcome.COMPLETED).order_by("-number").first()
        (fetched / OWNER).write_text(str(newest.number if newest else 0))
        _put_in_place(fetched, model)
    note(f"the weights of job {number} are here, after {time.monotonic() - began:.1f} s")


def _copy(storage: Storage, row: Artifact, fetched: Path, stopped: Stopped) -> None:
    target = fetched / Path(row.path).relative_to("model")
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with storage.open(row.storage_name) as source, target.open("wb") as file:
        for block in _blocks(source):
            if stopped():
                raise GaveUp(f"stopped while {row.storage_name} was fetched")
            file.write(block)
    if target.stat().st_size != row.size:
        raise WebAway(f"{row.storage_name} broke off after {target.stat().st_size} of {row.size} bytes")


def _blocks(source: "File[bytes]") -> Iterator[bytes]:
    try:
        yield from source.chunks(BLOCK)
    except (ConnectionError, TimeoutError, HTTPException) as error:
        raise WebAway(f"{source.name} broke off: {error or type(error).__name__}") from None


def _put_in_place(fetched: Path, model: Path) -> None:
    if model.exists():
        set_aside(model)
    try:
        os.rename(fetched, model)
    except OSError:  # another worker of this host was faster
        if not model.exists():
            raise
        shutil.rmtree(fetched)
