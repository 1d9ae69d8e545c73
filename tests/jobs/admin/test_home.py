"""The first page, and the pages of what the queue writes."""

import uuid

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobs.models import Attempt, Batch, Device, Event, Host, Job, Worker
from jobs.services.submission import Submission
from jobs.services.submit import submit_job
from tests.jobs.admin.conftest import SFT


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


def gpu(n=0, **columns):
    device = Device.objects.create(key=f"GPU-{n}", kind="gpu", host="box", name=f"H100-{n}", index=n, **columns)
    Worker.objects.create(name=f"gpu{n}", host="box", device=device, queue=f"q{n}", heartbeat_at=timezone.now())
    return device


def occupy(device, job):
    attempt = Attempt.objects.create(job=job, number=1, token=Job.new_token(), started_at=timezone.now())
    Device.objects.filter(pk=device.pk).update(attempt=attempt)
    Job.objects.filter(pk=job.pk).update(status="running", step=5, total_steps=10)


def test_each_device_shows_what_runs_and_what_is_next(boss, mei, job, browse):
    busy, free = gpu(0), gpu(1)
    occupy(busy, job)
    first, second = (
        submit_job(Submission(training_type="sft", params=SFT, owner=mei, name=name)) for name in ("second", "third")
    )
    page = browse(boss).get("/admin/")
    shown = [(row.device, row.job, row.next_job) for row in page.context["devices"]]
    assert shown == [(busy, job, second), (free, None, first)]
    text = page.content.decode()
    for expected in ("H100-0", "box · GPU 1", "5/10", "SFT third", "position 2 in the queue", "not known"):
        assert expected in text


def test_a_drained_device_and_a_paused_host_are_seen(viewer, mei, browse):
    gpu(0, drained_at=timezone.now(), drained_by=mei, drain_reason="loud fan")
    gpu(1)
    Host.objects.create(name="box", paused_reason="only 1.1 GB free on /srv")
    Host.objects.create(name="other")
    text = browse(viewer).get("/admin/").content.decode()
    assert "Nothing new starts on host <b>box</b>: only 1.1 GB free on /srv." in text
    assert "host <b>other</b>" not in text
    for expected in ("loud fan", "\ndrained\n", "\nhost paused\n", 'href="/admin/jobs/retentionrule/"'):
        assert expected in text


def test_a_device_whose_worker_stopped_is_not_shown_unless_it_is_drained(viewer, browse):
    gone, drained = gpu(0), gpu(1, drained_at=timezone.now())
    Worker.objects.update(stopped_at=timezone.now())
    page = browse(viewer).get("/admin/")
    assert [row.device for row in page.context["devices"]] == [drained]
    assert "make up" in page.content.decode()
    assert gone.name not in page.content.decode()


def test_the_number_of_queries_does_not_grow_with_devices_or_jobs(boss, mei, job, browse):
    client = browse(boss)

    def queries():
        with CaptureQueriesContext(connection) as seen:
            client.get("/admin/")
        return len(seen)

    def fill(first, last):
        for n in range(first, last):
            running, waiting = (submit_job(Submission(training_type="sft", params=SFT, owner=mei)) for _ in range(2))
            occupy(gpu(n), running)
            submit_job(Submission(training_type="sft", params=SFT, owner=mei, depends_on=waiting))
            Host.objects.create(name=f"host{n}", paused_reason="full")

    fill(0, 2)
    client.get("/admin/")
    few = queries()
    fill(2, 8)
    assert queries() == few


@pytest.mark.parametrize("model", ["worker", "event", "batch", "host"])
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


def test_an_event_of_a_device_stands_among_those_of_jobs(viewer, mei, job, browse):
    Event.objects.create(kind="device_drained", actor=mei, detail="H100 (box): loud fan")
    client = browse(viewer)
    text = client.get("/admin/jobs/event/").content.decode()
    for expected in ("device drained", "H100 (box): loud fan", "submitted", "SFT first"):
        assert expected in text
    alone = client.get("/admin/jobs/event/?job__isempty=1").context["cl"].result_list
    assert [event.kind for event in alone] == ["device_drained"]


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
    for model in ("device", "host", "window", "limit", "failurepattern", "retentionrule", "worker", "event"):
        assert f'href="/admin/jobs/{model}/"' in page
        assert browse(viewer).get(f"/admin/jobs/{model}/").status_code == 200
    assert 'href="/admin/auth/user/"' in browse(boss).get("/admin/").content.decode()
