"""A failed attempt explained by the rows of the database and its own parameters, and what becomes of its job."""

from types import SimpleNamespace

import pytest

from jobs.models import Attempt, FailurePattern, Job
from jobs.services.claim import claim_next
from jobs.worker import diagnosis, link
from jobs.worker.diagnosis import explain, place_of
from jobs.worker.outcome import classify
from jobs.worker.supervise import record_end
from tests.jobs.rows import queued, worker

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def connection_of_the_test(monkeypatch):
    """Let nobody renew the connection that holds the test's transaction: PostgreSQL would roll it back."""
    monkeypatch.setattr(link, "close_old_connections", lambda: None)


HALF = "--batch_size 8 --accumulation_steps 16 gives the same result in less memory"


def attempt_of(*, kind="cpu", **params):
    queued(params={"hidden_size": 64, "batch_size": 16, "accumulation_steps": 8, **params})
    return claim_next(worker(kind=kind))


def explained(attempt, folder, status, output="", *, oom_killed=False):
    ending = classify(status, folder, output=output, oom_killed=oom_killed)
    return explain(attempt, ending, output, folder=folder, by_kernel=oom_killed)


def test_out_of_memory_advises_by_the_jobs_own_parameters_whatever_the_exit_code(tmp_path):
    attempt = attempt_of()
    for status in (4, 1, 128 + 6):
        found = explained(attempt, tmp_path, status, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate\n")
        assert (found.outcome, found.again) == ("out_of_memory", False)
        assert found.cause.startswith("the GPU ran out of memory: torch.OutOfMemoryError: CUDA out of memory.")
        assert HALF in found.advice


def test_what_the_kernel_killed_on_the_cpu_advises_a_smaller_batch_too(tmp_path):
    found = explained(attempt_of(), tmp_path, 128 + 9, oom_killed=True)
    assert found.cause == "the machine ran out of memory: the kernel killed the trainer (SIGKILL)"
    assert HALF in found.advice


def test_what_the_kernel_killed_beside_a_gpu_advises_on_the_machines_memory(tmp_path):
    found = explained(attempt_of(kind="gpu", num_workers=8), tmp_path, 128 + 9, oom_killed=True)
    assert (found.outcome, "--num_workers 4" in found.advice) == ("out_of_memory", True)


def test_an_operators_pattern_comes_before_the_known_ones(tmp_path):
    FailurePattern.objects.create(title="the old filer", pattern="/data/old.*No space", advice="write to /data/new")
    found = explained(attempt_of(), tmp_path, 1, "OSError: [Errno 28] /data/old/x: No space left on device\n")
    assert (found.outcome, found.advice) == ("failed", "write to /data/new")
    assert found.cause.startswith("the old filer: OSError: ")


def test_a_persons_error_is_not_tried_again_and_keeps_its_own_line(tmp_path):
    attempt = attempt_of()
    found = explained(attempt, tmp_path, 1, "Traceback (most recent call last):\n  File\nKeyError: 'text'\n")
    assert (found.outcome, found.cause, found.advice, found.again) == ("failed", "KeyError: 'text'", "", False)


def test_an_explanation_that_fails_loses_no_ending(tmp_path, monkeypatch):
    monkeypatch.setattr(diagnosis, "place_of", lambda *_: 1 / 0)
    assert explained(attempt_of(), tmp_path, 1, "KeyError: 'text'\n").cause == "KeyError: 'text'"


def test_the_place_names_the_host_and_what_is_left_of_a_disk_that_is_nearly_full(tmp_path, monkeypatch):
    attempt = attempt_of()
    for free, place in [(12_288, "on here, 12.0 KB free on its disk"), (1 << 31, "on here")]:
        monkeypatch.setattr(diagnosis.shutil, "disk_usage", lambda _, free=free: SimpleNamespace(free=free))
        assert place_of(attempt, tmp_path) == place


def test_a_disk_that_stays_full_is_given_up_after_three_restarts_and_each_attempt_says_why(tmp_path, settings):
    settings.NIGHTSHIFT_MAX_REQUEUES = 3
    attempt = attempt_of()
    for number in range(1, 5):
        output = f"OSError: [Errno 28] No space left on device: 'part {number}'\n"
        record_end(attempt, explained(attempt, tmp_path, 1, output), folder=tmp_path)
        job = Job.objects.get()
        assert job.advice.startswith("Make room")
        attempt = claim_next(attempt.worker) if number < 4 else attempt
    assert (job.status, job.requeues) == (Job.Status.LOST, 3)
    assert job.cause.startswith("the disk is full: OSError: [Errno 28] No space left on device: 'part 4' (on here")
    assert job.cause.endswith("; given up after 3 restarts")
    attempts = Attempt.objects.order_by("number")
    assert [attempt.outcome for attempt in attempts] == ["lost"] * 4
    assert all(f"'part {attempt.number}'" in attempt.cause for attempt in attempts)
