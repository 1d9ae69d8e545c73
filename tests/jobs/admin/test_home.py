"""The first page, and the pages of what the queue writes."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from jobs.models import Attempt, Batch, Device, Job, Worker


def test_the_first_page_says_what_to_do_while_no_worker_runs(boss, browse):
    page = browse(boss).get("/admin/").content.decode()
    assert "make up" in page
    assert "The queue is empty." in page


def test_the_first_page_shows_what_waits_and_what_ended(boss, mei, job, browse):
    Job.objects.create(
        owner=mei,
        training_type="sft",
        title="SFT",
        name="done",
        status="failed",
        cause="disk full",
        finished_at=timezone.now(),
    )
    page = browse(boss).get("/admin/").content.decode()
    for text in ("SFT first", "no worker is running", "SFT done", "disk full"):
        assert text in page


def test_the_first_page_shows_jobs_only_to_those_who_may_see_them(stranger, job, browse):
    page = browse(stranger).get("/admin/")
    assert page.status_code == 200
    assert "SFT first" not in page.content.decode()


@pytest.mark.parametrize(
    ("heard", "stopped", "state"), [(0, None, "alive"), (3600, None, "silent"), (3600, True, "stopped")]
)
def test_a_worker_is_alive_silent_or_stopped(boss, browse, heard, stopped, state):
    now = datetime.now(UTC)
    device = Device.objects.create(key="cpu:a", kind="cpu", host="a", name="CPU")
    Worker.objects.create(
        name="cpu@a",
        host="a",
        device=device,
        queue="q",
        heartbeat_at=now - timedelta(seconds=heard),
        stopped_at=stopped and now,
    )
    page = browse(boss).get("/admin/jobs/worker/").content.decode()
    assert f">\n\n{state}\n" in page or f"{state}\n</span>" in page


@pytest.mark.parametrize("model", ["worker", "event", "batch"])
def test_what_the_queue_writes_is_read_only(boss, job, browse, model):
    client = browse(boss)
    assert client.get(f"/admin/jobs/{model}/").status_code == 200
    assert client.get(f"/admin/jobs/{model}/add/").status_code == 403


def test_a_batch_counts_its_jobs_by_outcome(boss, mei, job, browse):
    batch = Batch.objects.create(name="night", owner=mei)
    Job.objects.filter(pk=job.pk).update(batch=batch, status="completed")
    Attempt.objects.create(job=job, number=1, token=uuid.uuid4(), started_at=timezone.now())
    row = browse(boss).get("/admin/jobs/batch/").context["cl"].result_list[0]
    assert (row.completed, row.unfinished, row.failed) == (1, 0, 0)


def test_signing_in_without_a_destination_opens_the_first_page(boss, client):
    boss.set_password("a long password")
    boss.save()
    response = client.post("/admin/login/", {"username": "boss", "password": "a long password"})
    assert response.url == "/admin/"


def test_a_link_that_would_be_refused_is_not_shown(viewer, boss, browse):
    page = browse(viewer).get("/admin/").content.decode()
    assert 'href="/admin/jobs/job/"' in page
    assert 'href="/admin/jobs/job/add/"' not in page
    assert 'href="/admin/auth/user/"' not in page
    assert 'href="/admin/auth/user/"' in browse(boss).get("/admin/").content.decode()
