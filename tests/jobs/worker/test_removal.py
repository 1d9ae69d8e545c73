"""Deleting what was removed, from real folders."""

import threading
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from jobs.models import Job
from jobs.worker import removal
from jobs.worker.removal import clear, keep_clear, remove_due, set_aside
from tests.jobs.rows import queued

pytestmark = pytest.mark.django_db


@pytest.fixture
def home(tmp_path, settings):
    """A state folder whose runs are also where artifacts lie."""
    settings.NIGHTSHIFT_HOME = tmp_path
    storages = {name: dict(values) for name, values in settings.STORAGES.items()}
    storages["artifacts"] = {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": str(tmp_path / "runs")},
    }
    settings.STORAGES = storages
    (tmp_path / "runs").mkdir()
    return tmp_path


def job_with_files(home, *, status="completed", removed=""):
    job = queued()
    run = home / "runs" / str(job.pk)
    for path in ("checkpoint/state.pt", "checkpoint/model/config.json", "model/model.safetensors", "log.txt"):
        (run / path).parent.mkdir(parents=True, exist_ok=True)
        (run / path).write_bytes(bytes(100))
    moment = timezone.now() if removed else None
    Job.objects.filter(pk=job.pk).update(status=status, files_removed=removed, files_removed_at=moment)
    return job, run


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_only_what_was_removed_is_deleted(home):
    _, kept = job_with_files(home)
    _, weights = job_with_files(home, removed="checkpoints")
    gone, log = job_with_files(home, removed="all")
    assert remove_due() == 3
    assert len(names(kept)) == 4
    assert names(weights) == ["log.txt", "model/model.safetensors"]
    assert names(log) == ["log.txt"]
    gone.refresh_from_db()
    assert gone.disk_bytes == 100
    assert remove_due() == 0


@pytest.mark.parametrize("status", ["queued", "running", "held"])
def test_a_job_that_was_resumed_meanwhile_keeps_its_files(home, status):
    _, run = job_with_files(home, status=status, removed="all")
    assert remove_due() == 0
    assert len(names(run)) == 4


def test_a_link_is_removed_itself_and_never_what_it_leads_to(home, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "precious.txt").write_text("kept")
    job, run = job_with_files(home, removed="all")
    (run / "checkpoint").rename(run / "moved")
    (run / "checkpoint").symlink_to(outside)
    (run / "model" / "link").symlink_to(outside)
    other = queued()
    Job.objects.filter(pk=other.pk).update(status="completed", files_removed="all", files_removed_at=timezone.now())
    (outside / "checkpoint").mkdir()
    (outside / "checkpoint" / "state.pt").write_text("kept")
    (home / "runs" / str(other.pk)).symlink_to(outside)
    assert remove_due() == 2
    assert names(outside) == ["checkpoint/state.pt", "precious.txt"]
    assert not (run / "checkpoint").is_symlink()
    assert not (run / "model").exists()
    assert job.pk != other.pk


def test_folders_of_other_names_and_of_unknown_jobs_are_left_alone(home):
    _, run = job_with_files(home, removed="all")
    for name in (f"{run.name}.before-17", "out", "999999"):
        (home / "runs" / name / "model").mkdir(parents=True)
        (home / "runs" / name / "model" / "model.safetensors").write_bytes(b"x")
    remove_due()
    assert len(list((home / "runs").glob("*/model/model.safetensors"))) == 3


def test_what_an_older_database_left_under_the_number_is_left_alone(home):
    job, run = job_with_files(home, removed="all")
    Job.objects.filter(pk=job.pk).update(created_at=timezone.now() + timedelta(hours=1))
    assert remove_due() == 0
    assert len(names(run)) == 4


def test_a_folder_with_a_number_that_no_job_can_have_does_not_keep_the_others(home):
    (home / "runs" / ("9" * 25) / "model").mkdir(parents=True)
    _, run = job_with_files(home, removed="all")
    assert remove_due() == 2
    assert names(run) == ["log.txt"]


def test_a_folder_that_cannot_be_renamed_does_not_keep_the_others(home, monkeypatch):
    _, stuck = job_with_files(home, removed="all")
    _, run = job_with_files(home, removed="all")
    rename = Path.rename

    def refused(path, target):
        if path.parent == stuck:
            raise PermissionError(13, "Permission denied", str(path))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refused)
    assert remove_due() == 2
    assert len(names(stuck)) == 4
    assert names(run) == ["log.txt"]


def test_what_a_kill_left_half_deleted_is_deleted_later(home):
    _, run = job_with_files(home, removed="checkpoints")
    assert set_aside(home / "runs") == 1
    assert not (run / "checkpoint").exists()
    assert clear(home / "runs") == 1
    assert names(run) == ["log.txt", "model/model.safetensors"]


def test_copies_in_the_shared_artifacts_go_as_well(home, tmp_path_factory, settings):
    shared = tmp_path_factory.mktemp("shared")
    storages = {name: dict(values) for name, values in settings.STORAGES.items()}
    storages["artifacts"] = storages["artifacts"] | {"OPTIONS": {"location": str(shared)}}
    settings.STORAGES = storages
    job, _ = job_with_files(home, removed="all")
    copy = shared / str(job.pk) / "model"
    copy.mkdir(parents=True)
    (copy / "model.safetensors").write_bytes(b"x")
    assert remove_due() == 3
    assert not copy.exists()


def test_once_a_minute_the_rules_are_asked_and_folders_deleted_until_the_end(home, monkeypatch):
    _, run = job_with_files(home, removed="all")
    turns, asked = iter([False, False, True]), []
    monkeypatch.setattr(removal.connection, "close", lambda: None)  # it is the test's own
    keep_clear(lambda seconds: next(turns), threading.Lock(), first=lambda: asked.append(Path(run, "model").exists()))
    assert asked == [True, False]
    assert names(run) == ["log.txt"]


def test_a_rule_that_cannot_be_applied_does_not_end_the_thread(home, monkeypatch, caplog):
    turns = iter([False, False, True])
    monkeypatch.setattr(removal.connection, "close", lambda: None)  # it is the test's own

    def fails():
        raise OverflowError("date value out of range")

    keep_clear(lambda seconds: next(turns), threading.Lock(), first=fails)
    assert caplog.text.count("will try again: OverflowError('date value out of range')") == 2
