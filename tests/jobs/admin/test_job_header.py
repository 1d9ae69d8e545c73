"""The head of a job's page: what it asked of the queue, and what the queue makes of it."""

import uuid
from datetime import time, timedelta

from django.utils import timezone

from jobs.models import Attempt, Device, Job, Window
from jobs.services.submission import Submission
from jobs.services.submit import submit_job
from tests.jobs.admin.conftest import SFT
from tests.jobs.rows import worker


def head(client, job):
    return client.get(f"/admin/jobs/job/{job.pk}/change/").context


def attempt(job, *, minutes_ago=0, devices=()):
    """Start the one attempt of a job on devices of host a."""
    rows = [Device.objects.create(key=key, kind="gpu", host="a", name=key) for key in devices]
    began = timezone.now() - timedelta(minutes=minutes_ago)
    made = Attempt.objects.create(
        job=job, number=1, token=uuid.uuid4(), device=rows[0], device_count=len(rows), started_at=began
    )
    made.devices.set(rows)
    Job.objects.filter(pk=job.pk).update(status=Job.Status.RUNNING)


def test_a_job_that_may_start_is_expected_at_once_and_one_without_a_worker_at_no_known_time(job, viewer, browse):
    assert head(browse(viewer), job)["starts"] is None
    worker()
    assert abs(head(browse(viewer), job)["starts"] - timezone.now()) < timedelta(minutes=1)
    assert b"expected to start" in browse(viewer).get(f"/admin/jobs/job/{job.pk}/change/").content


def test_window_priority_and_an_operators_place_are_named_and_ordinary_wishes_are_not(job, mei, viewer, browse):
    told = ("window:", "priority:", "placed by an operator", "time limit:")
    address = f"/admin/jobs/job/{job.pk}/change/"
    text = browse(viewer).get(address).content.decode()
    assert [wish for wish in told if wish in text] == []
    night = Window.objects.create(name="nights", time_zone="UTC", opens=time(20), closes=time(8))
    Job.objects.filter(pk=job.pk).update(window=night, priority=Job.Priority.HIGH, place=1, time_limit=90)
    text = browse(viewer).get(address).content.decode()
    assert [wish for wish in (*told, "nights", "High") if wish not in text] == []


def test_a_running_job_names_each_of_its_devices(job, viewer, browse):
    attempt(job, devices=("H200 one", "H200 two"))
    assert head(browse(viewer), job)["devices"] == "H200 one (a), H200 two (a)"


def test_a_waiting_job_names_how_many_devices_of_which_kind_it_asks_for(job, viewer, browse):
    assert head(browse(viewer), job)["devices"] == "Any device"
    Job.objects.filter(pk=job.pk).update(device_request="label", device_label="80g", device_count=4)
    assert head(browse(viewer), job)["devices"] == "4 × 80g"


def test_of_the_time_limit_what_the_attempts_took_is_used(job, viewer, browse):
    assert head(browse(viewer), job)["time_limit"] == ""
    Job.objects.filter(pk=job.pk).update(time_limit=480)
    attempt(job, minutes_ago=75, devices=("H200 one",))
    assert head(browse(viewer), job)["time_limit"] == "8 h, of which 1 h 15 min are used"


def test_the_list_says_what_to_do_and_on_how_many_devices_a_job_ran(job, mei, viewer, browse):
    waiting = submit_job(Submission(training_type="sft", params=SFT, owner=mei))
    Job.objects.filter(pk=waiting.pk).update(device_request="gpu", device_count=3)
    attempt(job, devices=("H200 one", "H200 two"))
    Job.objects.filter(pk=job.pk).update(status=Job.Status.FAILED, cause="out of memory", advice="Halve the batch.")
    text = browse(viewer).get("/admin/jobs/job/").content.decode()
    assert 'title="out of memory\nHalve the batch."' in text
    assert "2 × H200 one" in text
    assert "3 × Any GPU" in text
