"""The worker's side of the files' way, against a real web."""

import http.server
import threading

import pytest
from django.core.files.base import ContentFile

from jobs.services.claim import claim_next
from jobs.storage import WebAway, WebRefused, WebStorage, storage_for
from tests.jobs.rows import queued, worker


@pytest.fixture
def attempt(transactional_db):
    queued()
    return claim_next(worker())


@pytest.fixture
def web(settings, tmp_path, live_server):
    """The storage as the web host has it: a folder."""
    backend = {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": str(tmp_path)}}
    settings.STORAGES = settings.STORAGES | {"artifacts": backend}
    return tmp_path


@pytest.mark.django_db(transaction=True)
def test_files_travel_whole_and_replace_what_was_there(web, live_server, attempt):
    storage = WebStorage(live_server.url).signed_for(attempt)
    name = f"{attempt.job_id}/model/weights"
    large = bytes(range(256)) * 12_000  # more than two blocks
    assert not storage.exists(name)
    for content in (b"first", large):
        assert storage.save(name, ContentFile(content)) == name
        assert (web / name).read_bytes() == content
    assert (storage.exists(name), storage.size(name)) == (True, 3_072_000)
    with storage.open(name) as file:
        assert b"".join(file.chunks()) == large
    storage.delete(name)
    storage.delete(name)
    assert not (web / name).exists()
    with pytest.raises(FileNotFoundError, match=f"{name} is not on {live_server.url}"):
        storage.open(name)


@pytest.mark.django_db(transaction=True)
def test_a_refusal_tells_what_the_web_said_even_if_it_did_not_read_on(web, live_server, attempt, settings):
    settings.NIGHTSHIFT_UPLOAD_LIMIT = 1000
    storage = WebStorage(live_server.url).signed_for(attempt)
    with pytest.raises(WebRefused, match="50000000 bytes are more than NIGHTSHIFT_UPLOAD_LIMIT, 1000"):
        storage.save(f"{attempt.job_id}/model/a", ContentFile(bytes(50_000_000)))
    with pytest.raises(WebRefused, match="is SECRET_KEY the same on every host"):
        WebStorage(live_server.url).exists(f"{attempt.job_id}/model/a")


def test_a_web_that_is_away_is_told_from_one_that_refuses():
    with pytest.raises(WebAway, match=r"http://127.0.0.1:1 does not answer"):
        WebStorage("http://127.0.0.1:1").exists("1/log.txt")


@pytest.mark.parametrize(
    ("status", "fault", "told"),
    [
        (503, WebAway, "answers 503"),
        (301, WebRefused, r"points elsewhere \(https://other/\): name that address"),
        (400, WebRefused, "refuses 1/log.txt"),
    ],
)
def test_what_stands_before_the_web_answers_for_it(status, fault, told):
    class Proxy(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.send_response(status)
            self.send_header("Location", "https://other/")
            self.end_headers()

    server = http.server.HTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=server.handle_request, daemon=True).start()
    with pytest.raises(fault, match=told):
        WebStorage(f"http://127.0.0.1:{server.server_port}").exists("1/log.txt")
    server.server_close()


@pytest.mark.django_db
def test_only_a_storage_behind_the_web_is_signed(settings, tmp_path, db):
    queued()
    attempt = claim_next(worker())
    settings.STORAGES = settings.STORAGES | {
        "artifacts": {"BACKEND": "jobs.storage.WebStorage", "OPTIONS": {"url": "http://web:8000/"}}
    }
    storage = storage_for(attempt)
    assert isinstance(storage, WebStorage)
    assert storage.address == "http://web:8000"
