"""Weights that another host made."""

import pytest

from jobs.models import Artifact, Attempt, Job
from jobs.services.attempts import finish_attempt
from jobs.services.claim import claim_next
from jobs.services.lifecycle import resume_job
from jobs.worker.outcome import Asked, Wish
from jobs.worker.weights import missing_weights
from tests.jobs.rows import person, queued, worker

pytestmark = pytest.mark.django_db


@pytest.fixture
def shared(settings, tmp_path, monkeypatch):
    """A folder where the artifacts of all hosts lie, beside this host's own state folder."""
    for name in ("home", "shared"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("NIGHTSHIFT_HOME", str(tmp_path / "home"))
    backend = {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": tmp_path / "shared"}}
    settings.STORAGES = settings.STORAGES | {"artifacts": backend}
    return tmp_path / "shared"


def trained(shared, content, *, job=None):
    """Return a job whose weights another host made and brought."""
    job = job or queued()
    finish_attempt(claim_next(worker(f"cpu@b{content}", key=f"cpu:b{content}")), "completed", result={})
    model = shared / str(job.pk) / "model"
    model.mkdir(parents=True, exist_ok=True)
    (model / "config.json").write_text(content)
    Artifact.objects.update_or_create(job=job, path="model/config.json", defaults={"size": len(content)})
    return job


def child_of(parent):
    queued(start_from="job", depends_on=parent)
    return claim_next(worker(f"cpu@{Job.objects.count()}", key=f"cpu:{Job.objects.count()}"))


def bring(attempt, tmp_path, *, wished=lambda: None):
    folder = tmp_path / "own"
    folder.mkdir(exist_ok=True)
    return missing_weights(attempt, folder, fenced=lambda: False, wished=wished)


def model_here(tmp_path, job):
    return tmp_path / "home" / "runs" / str(job.pk) / "model" / "config.json"


def test_weights_that_are_not_here_are_fetched_and_the_log_says_so(shared, tmp_path):
    parent = trained(shared, "{}")
    assert bring(child_of(parent), tmp_path) is None
    assert model_here(tmp_path, parent).read_text() == "{}"
    first, last = (tmp_path / "own" / "log.txt").read_text().splitlines()
    assert first == f"[the weights of job {parent.pk} are not on this host: fetching 1 files, 0.0 MB]"
    assert last.startswith(f"[the weights of job {parent.pk} are here, after ")
    assert [path.name for path in model_here(tmp_path, parent).parents[1].iterdir()] == ["model"]


def test_weights_that_are_here_are_left_as_they_are(shared, tmp_path):
    parent = trained(shared, "{}")
    own = model_here(tmp_path, parent)
    own.parent.mkdir(parents=True)
    own.write_text("own")
    assert bring(child_of(parent), tmp_path) is None
    assert own.read_text() == "own"
    assert not (tmp_path / "own" / "log.txt").exists()


def test_weights_that_a_later_attempt_replaced_elsewhere_are_fetched_anew(shared, tmp_path):
    parent = trained(shared, "{}")
    bring(child_of(parent), tmp_path)
    resume_job(parent, by=person())
    trained(shared, "{ }", job=parent)
    assert bring(child_of(parent), tmp_path) is None
    assert model_here(tmp_path, parent).read_text() == "{ }"
    assert len(list(model_here(tmp_path, parent).parents[1].glob("model.before-*"))) == 1


def test_weights_that_are_nowhere_fail_the_job_with_one_clear_cause(shared, tmp_path):
    parent = trained(shared, "{}")
    attempt = child_of(parent)
    (shared / str(parent.pk) / "model" / "config.json").unlink()
    ending = bring(attempt, tmp_path)
    assert (ending.outcome, ending.again) == (Attempt.Outcome.FAILED, False)
    assert ending.cause.startswith(f"the weights of job {parent.pk} cannot be had: ")
    Artifact.objects.all().delete()
    cause = f"job {parent.pk} has no weights to start from: it left none, or they were removed"
    assert bring(attempt, tmp_path).cause == cause
    assert not model_here(tmp_path, parent).parent.exists()


def test_a_cancel_while_weights_are_fetched_ends_the_attempt(shared, tmp_path):
    parent = trained(shared, "{}")
    ending = bring(child_of(parent), tmp_path, wished=lambda: Wish(Asked.CANCEL))
    assert (ending.outcome, ending.again) == (Attempt.Outcome.CANCELLED, False)
    assert not model_here(tmp_path, parent).parent.exists()


def test_a_fetched_file_of_another_size_is_not_used(shared, tmp_path, settings):
    settings.NIGHTSHIFT_WEB_PATIENCE = 0.0
    parent = trained(shared, "{}")
    attempt = child_of(parent)
    Artifact.objects.update(size=3)
    ending = bring(attempt, tmp_path)
    assert (ending.outcome, ending.again) == (Attempt.Outcome.LOST, True)
    assert ending.cause.endswith(f"{parent.pk}/model/config.json broke off after 2 of 3 bytes")
    assert not model_here(tmp_path, parent).parent.exists()
