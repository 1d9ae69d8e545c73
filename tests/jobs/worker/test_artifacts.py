"""Where a finished run's files go, and how an attempt ends when they cannot."""

import pytest

from jobs.services.claim import claim_next
from jobs.storage import WebAway, WebRefused
from jobs.worker import artifacts
from jobs.worker.artifacts import bring_results, upload
from jobs.worker.outcome import Asked, Ending, Wish
from tests.jobs.rows import queued, worker

pytestmark = pytest.mark.django_db
DONE = Ending(outcome="completed", exit_code=0)


@pytest.fixture
def run(settings, tmp_path):
    """A finished run, and a folder elsewhere where artifacts are kept."""
    queued()
    attempt = claim_next(worker())
    folder = tmp_path / "runs" / str(attempt.job_id)
    for name in ("model/sub/part", "model/config.json", "result.json", "log.txt", "checkpoint/state"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    backend = {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": tmp_path / "kept"}}
    settings.STORAGES = settings.STORAGES | {"artifacts": backend}
    settings.NIGHTSHIFT_WEB_PATIENCE = 0.0
    return attempt, folder, tmp_path / "kept" / str(attempt.job_id)


def bring(attempt, folder, wish=None):
    return bring_results(attempt, folder, DONE, fenced=lambda: False, wished=lambda: wish)


def fails_with(monkeypatch, error):
    def fails(*_):
        raise error

    monkeypatch.setattr(artifacts, "_replace", fails)


def test_what_people_download_is_brought_and_replaces_what_was_there(run):
    attempt, folder, kept = run
    kept.mkdir(parents=True)
    (kept / "log.txt").write_text("of an earlier attempt")
    ending, rows = bring(attempt, folder)
    names = ["model/config.json", "model/sub/part", "result.json", "log.txt"]
    assert (ending, [(row.path, row.size) for row in rows]) == (DONE, [(name, len(name)) for name in names])
    assert [(kept / name).read_text() for name in names] == names
    assert not (kept / "checkpoint").exists()


def test_files_that_lie_in_the_storage_already_are_registered_where_they_are(run, settings, monkeypatch):
    attempt, folder, _ = run
    backend = {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": folder.parent}}
    settings.STORAGES = settings.STORAGES | {"artifacts": backend}
    fails_with(monkeypatch, AssertionError("nothing is to be copied onto itself"))
    assert len(upload(attempt, folder, stopped=lambda: False)) == 4


@pytest.mark.parametrize(
    ("error", "wish", "outcome", "again"),
    [
        (WebAway("http://web does not answer"), None, "lost", True),
        (WebAway("http://web does not answer"), Wish(Asked.DRAIN), "drained", True),
        (WebAway("http://web does not answer"), Wish(Asked.CANCEL), "cancelled", False),
        (WebRefused("http://web refuses 1/log.txt"), None, "failed", False),
    ],
)
def test_results_that_cannot_be_brought_stay_and_the_cause_says_where(run, monkeypatch, error, wish, outcome, again):
    attempt, folder, _ = run
    fails_with(monkeypatch, error)
    ending, rows = bring(attempt, folder, wish)
    assert (ending.outcome, ending.again, rows) == (outcome, again, [])
    assert ending.cause == f"the results are kept on here: {error}"
    assert (folder / "model" / "config.json").exists()
