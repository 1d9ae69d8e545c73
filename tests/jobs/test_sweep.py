"""The janitor: expired leases, adopted results, woken workers."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import DataError
from django.utils import timezone

from jobs.models import Attempt, Job
from jobs.services import sweep
from jobs.services.attempts import Fenced, finish_attempt
from jobs.services.claim import claim_next
from jobs.services.lifecycle import request_cancel
from jobs.services.sweep import Sweeper, reap_expired, reap_left_behind, take_over
from tests.jobs.rows import person, queued, worker

pytestmark = pytest.mark.django_db


def expired(settings, tmp_path, monkeypatch):
    """Return an attempt whose lease ran out a second ago, and its run folder."""
    monkeypatch.setenv("NIGHTSHIFT_HOME", str(tmp_path))
    queued()
    attempt = claim_next(worker())
    Job.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    folder = tmp_path / "runs" / str(attempt.job_id)
    folder.mkdir(parents=True)
    (folder / "attempt").write_text(str(attempt.number))
    settings.STORAGES = settings.STORAGES | {
        "artifacts": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": str(tmp_path / "runs")},
        }
    }
    return attempt, folder


def write_result(folder: Path, *, exit_code: int):
    (folder / "result.json").write_text(json.dumps({"exit_code": exit_code, "steps": 3}))


def test_an_expired_lease_puts_the_job_back(settings, tmp_path, monkeypatch):
    attempt, _ = expired(settings, tmp_path, monkeypatch)
    assert reap_expired() == 1
    job = Job.objects.get()
    assert (job.status, job.resume, job.requeues) == (Job.Status.QUEUED, True, 1)
    with pytest.raises(Fenced):
        finish_attempt(attempt, Attempt.Outcome.COMPLETED, result=None)


def test_a_lease_that_still_runs_is_left_alone():
    queued()
    claim_next(worker())
    assert reap_expired() == 0


def test_a_worker_that_starts_again_puts_back_what_it_left_without_waiting_for_the_lease():
    queued()
    attempt = claim_next(worker())
    reap_left_behind(worker("other@here", key="cpu:other"))
    assert Job.objects.get().status == Job.Status.RUNNING
    reap_left_behind(attempt.worker)
    job = Job.objects.get()
    assert (job.status, job.resume, job.requeues) == (Job.Status.QUEUED, True, 1)
    assert job.cause == f"a process of worker {attempt.worker} ended without a word"
    with pytest.raises(Fenced):
        finish_attempt(attempt, Attempt.Outcome.COMPLETED, result=None)


@pytest.mark.django_db(transaction=True)  # writing back begins with closing an old connection
def test_a_finished_result_is_adopted_with_its_rows(settings, tmp_path, monkeypatch):
    _, folder = expired(settings, tmp_path, monkeypatch)
    (folder / "log.txt").write_text("step 3\n")
    (folder / "metrics.jsonl").write_text('{"step": 3, "total_steps": 3, "time": 1.0, "values": {"loss": 0.5}}\n')
    write_result(folder, exit_code=0)
    reap_expired()
    job = Job.objects.get()
    assert (job.status, job.result["steps"], job.last_values) == (Job.Status.COMPLETED, 3, {"loss": 0.5})
    assert job.log_chunks.get().content == b"step 3\n"
    assert set(job.artifacts.values_list("path", flat=True)) == {"log.txt", "result.json"}


@pytest.mark.parametrize("owner", ["0", "2", None])
def test_a_folder_that_is_another_attempts_on_this_host_says_nothing(settings, tmp_path, monkeypatch, owner):
    _, folder = expired(settings, tmp_path, monkeypatch)
    (folder / "log.txt").write_text("of another attempt\n")
    write_result(folder, exit_code=0)
    (folder / "attempt").unlink() if owner is None else (folder / "attempt").write_text(owner)
    reap_expired()
    job = Job.objects.get()
    assert (job.status, job.result, job.log_chunks.count()) == (Job.Status.QUEUED, {}, 0)


def test_a_cancel_is_carried_out_when_the_worker_is_gone(settings, tmp_path, monkeypatch):
    attempt, _ = expired(settings, tmp_path, monkeypatch)
    request_cancel(attempt.job, by=person())
    reap_expired()
    assert Job.objects.get().status == Job.Status.CANCELLED


def test_of_two_janitors_one_takes_over(settings, tmp_path, monkeypatch):
    expired(settings, tmp_path, monkeypatch)
    seen = Job.objects.get()
    assert take_over(seen) is not None
    assert take_over(seen) is None


def test_nothing_is_reaped_in_the_first_lease_after_a_start(settings, tmp_path, monkeypatch):
    expired(settings, tmp_path, monkeypatch)
    Sweeper().turn()
    assert Job.objects.get().status == Job.Status.RUNNING
    settings.NIGHTSHIFT_LEASE = 0.0
    Sweeper().turn()
    assert Job.objects.get().status == Job.Status.QUEUED


def test_only_idle_workers_that_could_claim_something_are_woken(monkeypatch):
    woken: list[str] = []
    monkeypatch.setattr(sweep, "publish", lambda *queues: woken.extend(queues))
    cpu, _ = worker(), worker("silent@here", key="cpu:other", seconds_silent=100)
    busy = worker("busy@here", key="cpu:busy")
    worker("gpu0@here", kind="gpu", key="GPU-1")
    queued()
    claim_next(busy)
    sweep.wake_for_work()
    assert woken == []
    queued(device_request="cpu")
    sweep.wake_for_work()
    assert woken == [cpu.queue]


def test_after_a_pause_leases_are_left_alone_for_one_lease(settings, tmp_path, monkeypatch):
    expired(settings, tmp_path, monkeypatch)
    settings.NIGHTSHIFT_LEASE = 0.0
    sweeper = Sweeper()
    settings.NIGHTSHIFT_LEASE = 60.0
    sweeper._steady -= 3.5  # as if the last turn had begun 3.5 seconds ago
    sweeper.turn()
    assert Job.objects.get().status == Job.Status.RUNNING


def test_remains_that_cannot_be_read_free_the_device_and_put_the_job_back(settings, tmp_path, monkeypatch):
    attempt, folder = expired(settings, tmp_path, monkeypatch)
    (folder / "log.txt").mkdir()
    reap_expired()
    job = Job.objects.get()
    assert (job.status, job.requeues) == (Job.Status.QUEUED, 1)
    assert job.cause.endswith("was gone for longer than the lease; what it left cannot be used: IsADirectoryError")
    attempt.device.refresh_from_db()
    assert attempt.device.attempt is None


def test_rows_that_the_database_refuses_keep_no_other_attempt_from_being_settled(settings, tmp_path, monkeypatch):
    older, _ = expired(settings, tmp_path, monkeypatch)
    queued()
    refused = claim_next(worker("cpu2@here", key="cpu:two"))
    Job.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    settle = sweep.settle

    def refuse(attempt, *, cause):
        if attempt.job_id == refused.job_id:
            raise DataError("value out of range")
        settle(attempt, cause=cause)

    monkeypatch.setattr(sweep, "settle", refuse)
    assert reap_expired() == 2
    assert set(Job.objects.values_list("status", flat=True)) == {Job.Status.QUEUED}
    assert older.job_id < refused.job_id
