"""The pages of devices."""

from datetime import timedelta

import pytest
from django.contrib.admin import site
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobs.models import Attempt, Device, Event, Host, Job, Worker
from tests.jobs.admin.conftest import member, told
from tests.jobs.rows import queued

LIST = "/admin/jobs/device/"
PAGES = ["", "{}/change/"]


def gpu(host="a", *, heard=0, stopped=None, index=0):
    device = Device.objects.create(
        key=f"GPU-{host}-{index}", kind="gpu", host=host, name="H100", index=index, memory_bytes=80 * 2**30
    )
    heartbeat = timezone.now() - timedelta(seconds=heard)
    name = f"gpu{index}@{host}"
    Worker.objects.create(
        name=name, host=host, device=device, queue=name, heartbeat_at=heartbeat, stopped_at=stopped and heartbeat
    )
    return device


def occupy(device, job):
    attempt = Attempt.objects.create(job=job, number=1, token=Job.new_token(), started_at=timezone.now())
    Device.objects.filter(pk=device.pk).update(attempt=attempt)
    Job.objects.filter(pk=job.pk).update(status="running")


@pytest.fixture
def operator(db):
    return member("operator", "view_job", "operate")


@pytest.fixture
def device(db):
    return gpu()


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(
    ("heard", "stopped", "state"),
    [(0, None, "free"), (3600, None, "worker is silent"), (3600, True, "no worker")],
)
def test_a_device_is_free_while_its_worker_lives(viewer, browse, page, heard, stopped, state):
    device = gpu(heard=heard, stopped=stopped)
    assert f"\n{state}\n" in browse(viewer).get(LIST + page.format(device.pk)).content.decode()


@pytest.mark.parametrize("page", PAGES)
def test_a_busy_device_names_its_job(viewer, device, job, browse, page):
    occupy(device, job)
    text = browse(viewer).get(LIST + page.format(device.pk)).content.decode()
    assert "\nbusy\n" in text
    assert f'href="/admin/jobs/job/{job.pk}/change/">{job.pk} SFT first</a>' in text


def test_a_device_of_a_paused_host_is_not_called_free(viewer, device, browse):
    Host.objects.create(name="a", paused_reason="too full")
    assert "\nhost paused\n" in browse(viewer).get(LIST).content.decode()


@pytest.mark.parametrize("page", PAGES)
def test_a_drained_device_says_who_when_and_why(viewer, operator, device, browse, page):
    since = timezone.now().replace(2026, 3, 4, 5, 6)
    Device.objects.filter(pk=device.pk).update(drained_at=since, drained_by=operator, drain_reason="loud fan")
    text = browse(viewer).get(LIST + page.format(device.pk)).content.decode()
    assert "\ndrained\n" in text
    assert "by operator since 2026-03-04 05:06: loud fan" in text


def test_the_number_of_queries_does_not_grow_with_the_devices(viewer, browse):
    client = browse(viewer)

    def queries():
        with CaptureQueriesContext(connection) as seen:
            client.get(LIST)
        return len(seen)

    gpu()
    client.get(LIST)
    one_row = queries()
    for n in range(1, 6):
        gpu(index=n)
    assert queries() == one_row


def test_labels_are_edited_and_shown_beside_the_memory(operator, device, browse):
    client = browse(operator)
    client.post(f"{LIST}{device.pk}/change/", {"labels": "quiet fast", "host": "elsewhere"})
    device.refresh_from_db()
    assert (device.labels, device.host) == ("quiet fast", "a")
    text = client.get(LIST).content.decode()
    assert "<code>80g</code> <code>fast</code> <code>quiet</code>" in text


def test_a_device_is_drained_after_its_job_and_resumed(operator, device, job, browse):
    occupy(device, job)
    client = browse(operator)
    assert "SFT first runs on it now." in client.get(f"{LIST}{device.pk}/drain/").content.decode()
    answer = client.post(f"{LIST}{device.pk}/drain/", {"when": "after", "reason": "loud fan"})
    assert told(answer) == ["Nothing new starts on H100 (a)."]
    device.refresh_from_db()
    job.refresh_from_db()
    assert (device.drained_by, device.drain_reason, job.yield_reason) == (operator, "loud fan", "")
    assert told(client.post(f"{LIST}{device.pk}/resume/"))[-1] == "Jobs may start on H100 (a) again."
    device.refresh_from_db()
    assert device.drained_at is None
    kinds = Event.objects.filter(job=None).order_by("id").values_list("kind", "actor__username")
    assert list(kinds) == [("device_drained", "operator"), ("device_resumed", "operator")]


def test_draining_now_sends_the_job_back(operator, device, job, browse):
    occupy(device, job)
    browse(operator).post(f"{LIST}{device.pk}/drain/", {"when": "now", "reason": "loud fan"})
    job.refresh_from_db()
    assert job.yield_reason == "H100 (a) was drained: loud fan"


def test_when_is_not_asked_of_a_device_that_runs_nothing(operator, device, job, browse):
    def asked():
        return list(browse(operator).get(f"{LIST}{device.pk}/drain/").context["form"].fields)

    assert asked() == ["reason"]
    occupy(device, job)
    assert asked() == ["when", "reason"]


def test_draining_a_drained_device_now_keeps_its_reason(operator, device, job, browse):
    occupy(device, job)
    Device.objects.filter(pk=device.pk).update(drained_at=timezone.now(), drain_reason="loud fan")
    form = browse(operator).get(f"{LIST}{device.pk}/drain/").context["form"]
    assert {name: form[name].value() for name in form.fields} == {"when": "now", "reason": "loud fan"}


def test_a_job_that_waits_for_a_drained_device_says_why_it_is_drained(operator, device, job, browse):
    browse(operator).post(f"{LIST}{device.pk}/drain/", {"reason": "loud fan"})
    assert "H100 (a) is drained: loud fan" in browse(operator).get("/admin/").content.decode()


def test_draining_needs_a_reason(operator, device, browse):
    form = browse(operator).post(f"{LIST}{device.pk}/drain/", {"when": "after"}).context["form"]
    device.refresh_from_db()
    assert (list(form.errors), device.drained_at) == (["reason"], None)


def test_a_verb_that_no_longer_applies_says_so(operator, device, browse):
    assert told(browse(operator).post(f"{LIST}{device.pk}/resume/")) == ["H100 (a) is not drained."]


@pytest.mark.parametrize("action", ["drain", "resume"])
def test_only_operators_drain_and_resume(viewer, mei, stranger, boss, device, browse, action):
    before = timezone.now() if action == "resume" else None
    Device.objects.filter(pk=device.pk).update(drained_at=before)
    asked = {"when": "after", "reason": "loud fan"}
    for person in (viewer, mei, stranger, member("half", "operate")):
        client = browse(person)
        assert client.post(f"{LIST}{device.pk}/{action}/", asked).status_code == 403
        for page in (LIST, f"{LIST}{device.pk}/change/"):
            assert f"{device.pk}/{action}/" not in client.get(page).content.decode()
    device.refresh_from_db()
    assert device.drained_at == before
    for page in (LIST, f"{LIST}{device.pk}/change/"):
        assert f"{device.pk}/{action}/" in browse(boss).get(page).content.decode()
    browse(boss).post(f"{LIST}{device.pk}/{action}/", asked)
    device.refresh_from_db()
    assert (device.drained_at is None) == (action == "resume")


def test_a_link_changes_nothing_and_a_post_from_elsewhere_is_refused(operator, device, browse):
    client = browse(operator)
    assert client.get(f"{LIST}{device.pk}/resume/").status_code == 405
    client.get(f"{LIST}{device.pk}/drain/?when=now&reason=x")
    elsewhere = Client(enforce_csrf_checks=True)
    elsewhere.force_login(operator)
    asked = {"when": "after", "reason": "loud fan"}
    assert elsewhere.post(f"{LIST}{device.pk}/drain/", asked).status_code == 403
    device.refresh_from_db()
    assert device.drained_at is None


def test_who_sees_jobs_reads_devices_and_nobody_adds_or_deletes_one(viewer, mei, boss, stranger, device, browse):
    page = f"{LIST}{device.pk}/change/"
    assert browse(stranger).get(LIST).status_code == 403
    for reader in (viewer, mei):
        assert browse(reader).get(page).status_code == 200
        assert browse(reader).post(page, {"labels": "mine"}).status_code == 403
    assert browse(boss).get(f"{LIST}add/").status_code == 403
    assert browse(boss).post(f"{LIST}{device.pk}/delete/", {"post": "yes"}).status_code == 403


def test_labels_that_are_saved_while_a_job_starts_do_not_take_its_device_away(device):
    as_read = Device.objects.get(pk=device.pk)
    occupy(device, queued())
    as_read.labels = "quiet"
    site._registry[Device].save_model(None, as_read, None, change=True)
    device.refresh_from_db()
    assert (device.labels, device.attempt is not None) == ("quiet", True)
