"""Why a job waits."""

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.models import Device, Job
from jobs.services.reasons import waiting_reasons
from tests.jobs.rows import queued, worker

pytestmark = pytest.mark.django_db


def test_each_job_has_its_own_reason(django_assert_max_num_queries):
    worker()
    absent = Device.objects.create(key="GPU-9", kind="gpu", host="there", name="H200")
    failed, running, cancelled = queued(), queued(), queued()
    Job.objects.filter(pk=failed.pk).update(status=Job.Status.FAILED)
    Job.objects.filter(pk=running.pk).update(status=Job.Status.RUNNING)
    Job.objects.filter(pk=cancelled.pk).update(status=Job.Status.CANCELLED)
    expected = {
        queued(): "position 1 in the queue",
        queued(): "position 2 in the queue",
        queued(hold=True): "held",
        queued(depends_on=failed): f"job {failed.pk} failed",
        queued(depends_on=running): f"waiting for job {running.pk}",
        queued(depends_on=cancelled): f"job {cancelled.pk} was cancelled",
        queued(depends_on=failed, dependency_rule="any_end"): "position 3 in the queue",
        queued(device_request="gpu"): "no worker serves a GPU",
        queued(device_request="named", device=absent): "named device H200 (there) has no worker",
    }
    jobs = list(Job.objects.all())
    with django_assert_max_num_queries(15):
        assert waiting_reasons(jobs) == {job.pk: reason for job, reason in expected.items()}


def test_without_a_worker_nothing_runs():
    worker(seconds_silent=61)
    job = queued()
    assert waiting_reasons([job]) == {job.pk: "no worker is running"}


def test_a_time_of_today_is_shown_without_its_date(settings):
    settings.TIME_ZONE = "Asia/Shanghai"
    worker()
    later = timezone.now() + timedelta(days=3)
    job = queued(not_before=later)
    local = later.astimezone(timezone.get_default_timezone())
    assert waiting_reasons([job]) == {job.pk: f"not before {local:%Y-%m-%d %H:%M}"}


def test_jobs_that_do_not_wait_have_no_reason():
    job = queued()
    Job.objects.filter(pk=job.pk).update(status=Job.Status.COMPLETED)
    job.refresh_from_db()
    assert waiting_reasons([job]) == {}
