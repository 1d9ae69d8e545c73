"""Keeping a job's files from retention, on its page."""

import pytest
from django.utils import timezone

from jobs.models import Job
from tests.jobs.admin.conftest import member, told


def keep(client, job, value):
    return client.post(f"/admin/jobs/job/{job.pk}/keep/", {"value": value})


def page(client, job):
    return client.get(f"/admin/jobs/job/{job.pk}/change/").content.decode()


def test_the_owner_pins_and_unpins(mei, job, browse):
    Job.objects.filter(pk=job.pk).update(disk_bytes=2_097_152)
    client = browse(mei)
    assert "Keep files" in page(client, job)
    assert told(keep(client, job, "1")) == [f"No retention rule removes the files of job {job.pk}."]
    job.refresh_from_db()
    assert job.keep_files
    shown = page(client, job)
    assert "kept from retention" in shown
    assert "Let files be removed" in shown
    assert told(keep(client, job, "0")) == [f"Retention rules may remove the files of job {job.pk}."]
    job.refresh_from_db()
    assert not job.keep_files


def test_after_a_removal_the_page_says_what_is_gone_and_offers_nothing(mei, job, browse):
    Job.objects.filter(pk=job.pk).update(status="completed", files_removed="all", files_removed_at=timezone.now())
    client = browse(mei)
    shown = page(client, job)
    assert "removed by retention: Checkpoints and weights" in shown
    assert "Keep files" not in shown
    assert told(keep(client, job, "1")) == [f"The files of job {job.pk} were removed already."]


@pytest.mark.parametrize("rights", [("view_job",), ("view_job", "add_job")])
def test_who_may_not_steer_a_job_may_not_pin_it(job, browse, rights):
    client = browse(member("other", *rights))
    assert "Keep files" not in page(client, job)
    assert keep(client, job, "1").status_code == 403
    job.refresh_from_db()
    assert not job.keep_files


def test_pinning_is_no_link(mei, job, browse):
    assert browse(mei).get(f"/admin/jobs/job/{job.pk}/keep/").status_code == 405
