"""The web's side of the files' way: who may bring, fetch and remove which file."""

import hashlib

import pytest

from jobs.models import Job
from jobs.services.attempts import finish_attempt
from jobs.services.claim import claim_next
from jobs.storage import signature
from tests.jobs.rows import queued, worker

pytestmark = pytest.mark.django_db
BODY = b"weights"


@pytest.fixture
def runs(settings, tmp_path):
    """The folder where the web keeps runs."""
    folder = tmp_path / "runs"
    folder.mkdir()
    backend = {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": str(folder)}}
    settings.STORAGES = settings.STORAGES | {"artifacts": backend}
    return folder


@pytest.fixture
def attempt(runs):
    queued()
    return claim_next(worker())


def right(attempt):
    return {"Authorization": f"Nightshift {attempt.job_id}:{signature(attempt.token)}"}


def put(client, attempt, path, body=BODY, *, job=None, digest=None, headers=None):
    announced = {"X-Content-SHA256": digest or hashlib.sha256(body).hexdigest()}
    return client.put(
        f"/transfer/{job or attempt.job_id}/{path}",
        body,
        content_type="application/octet-stream",
        headers=(right(attempt) if headers is None else headers) | announced,
    )


def test_a_file_is_brought_measured_fetched_and_removed(client, attempt, runs):
    address = f"/transfer/{attempt.job_id}/model/a.safetensors"
    assert put(client, attempt, "model/a.safetensors").status_code == 204
    kept = runs / str(attempt.job_id) / "model" / "a.safetensors"
    assert kept.read_bytes() == BODY
    assert [path.name for path in kept.parent.iterdir()] == ["a.safetensors"]
    assert client.head(address, headers=right(attempt)).headers["Content-Length"] == "7"
    assert b"".join(client.get(address, headers=right(attempt)).streaming_content) == BODY
    assert client.delete(address, headers=right(attempt)).status_code == 204
    assert client.get(address, headers=right(attempt)).status_code == 404


def test_without_the_signature_of_the_lease_nothing_is_done(client, attempt, runs):
    number = attempt.job_id
    trainers_own = {"Authorization": f"Nightshift {number}:{attempt.token}"}
    wrong = {"Authorization": f"Nightshift {number}:{'0' * 64}"}
    for headers in ({}, trainers_own, wrong):
        assert put(client, attempt, "result.json", headers=headers).status_code == 403
    assert list(runs.iterdir()) == []


def test_an_attempt_that_ended_has_no_right_any_more(client, attempt, runs):
    finish_attempt(attempt, "completed", result={})
    assert put(client, attempt, "result.json").status_code == 403


def test_the_right_of_one_job_is_none_to_write_below_another(client, attempt, runs):
    other = queued()
    assert put(client, attempt, "result.json", job=other.pk).status_code == 403
    assert client.delete(f"/transfer/{other.pk}/result.json", headers=right(attempt)).status_code == 403
    assert list(runs.iterdir()) == []


def test_a_job_reads_the_weights_that_it_starts_from_and_no_other_file_of_another_job(client, runs):
    parent, stranger = queued(), queued()
    for job in (parent, stranger):
        (runs / str(job.pk) / "model").mkdir(parents=True)
        (runs / str(job.pk) / "model" / "config.json").write_text("{}")
        (runs / str(job.pk) / "log.txt").write_text("$")
    Job.objects.update(status=Job.Status.COMPLETED)
    queued(start_from="job", depends_on=parent)
    child = claim_next(worker())
    found = {
        (job.pk, path): client.get(f"/transfer/{job.pk}/{path}", headers=right(child)).status_code
        for job in (parent, stranger)
        for path in ("model/config.json", "log.txt")
    }
    assert found == {
        (parent.pk, "model/config.json"): 200,
        (parent.pk, "log.txt"): 403,
        (stranger.pk, "model/config.json"): 403,
        (stranger.pk, "log.txt"): 403,
    }


@pytest.mark.parametrize(
    "path",
    [
        "model/../../2/model/a",
        "..%2F..%2Fa",
        "/etc/passwd",
        "model/..",
        "model/a b",
        "model/a%00",
        "checkpoint/state.pt",
        "model/" + "a" * 300,
    ],
)
def test_a_name_that_no_run_has_is_refused(client, attempt, runs, path):
    assert put(client, attempt, path).status_code in (400, 403, 404)
    assert list(runs.iterdir()) == []


def test_a_link_that_leads_out_of_the_runs_folder_is_not_followed(client, attempt, runs, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    own = runs / str(attempt.job_id)
    own.mkdir()
    (own / "model").symlink_to(outside)
    (own / "log.txt").symlink_to(outside / "secret")
    assert put(client, attempt, "model/a").status_code == 400
    assert client.get(f"/transfer/{attempt.job_id}/log.txt", headers=right(attempt)).status_code == 400
    assert [path.name for path in outside.iterdir()] == ["secret"]


def test_a_folder_is_no_file_and_a_file_is_no_folder(client, attempt, runs):
    assert put(client, attempt, "model/a/b").status_code == 204
    address = f"/transfer/{attempt.job_id}/model/a"
    for method in (client.get, client.head, client.delete):
        assert method(address, headers=right(attempt)).status_code == 400
    assert put(client, attempt, "model/a").status_code == 400
    below = [ask(f"{address}/b/c", headers=right(attempt)).status_code for ask in (client.get, client.head)]
    assert below == [404, 404]
    assert client.delete(f"{address}/b/c", headers=right(attempt)).status_code == 204
    assert (runs / str(attempt.job_id) / "model" / "a" / "b").read_bytes() == BODY


@pytest.mark.parametrize("length", ["", "-3", "abc", "1" * 5000])
def test_a_length_that_is_no_number_is_refused(client, attempt, runs, length):
    address = f"/transfer/{attempt.job_id}/log.txt"
    answer = client.generic("PUT", address, b"", headers=right(attempt), CONTENT_LENGTH=length)
    assert answer.status_code == 411
    assert list(runs.iterdir()) == []


def test_a_body_that_is_not_what_was_announced_leaves_the_file_as_it_was(client, attempt, runs):
    assert put(client, attempt, "log.txt", b"old").status_code == 204
    assert put(client, attempt, "log.txt", b"new", digest="0" * 64).status_code == 422
    kept = runs / str(attempt.job_id)
    assert [(path.name, path.read_bytes()) for path in kept.iterdir()] == [("log.txt", b"old")]


def test_a_file_above_the_limit_is_refused_before_it_is_read(client, attempt, runs, settings):
    settings.NIGHTSHIFT_UPLOAD_LIMIT = 6
    answer = put(client, attempt, "log.txt")
    assert (answer.status_code, answer.content) == (413, b"7 bytes are more than NIGHTSHIFT_UPLOAD_LIMIT, 6\n")
    assert list(runs.iterdir()) == []


def test_a_disk_that_takes_no_more_is_said_and_leaves_no_half_file(client, attempt, runs, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("jobs.transfer.os.fsync", full)
    answer = put(client, attempt, "log.txt")
    assert (answer.status_code, answer.content) == (507, b"the web cannot keep it: No space left on device\n")
    assert list((runs / str(attempt.job_id)).iterdir()) == []


def test_a_web_that_keeps_files_elsewhere_says_what_to_change(client, attempt, settings):
    backend = {"BACKEND": "jobs.storage.WebStorage", "OPTIONS": {"url": "http://web:8000"}}
    settings.STORAGES = settings.STORAGES | {"artifacts": backend}
    answer = put(client, attempt, "log.txt")
    assert (answer.status_code, b"give this host the web's storage" in answer.content) == (409, True)
