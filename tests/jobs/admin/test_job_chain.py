"""Releasing and cancelling what waits for a job that failed, and what the job's page says of it."""

import pytest

from jobs.models import Job
from jobs.services.submission import Submission
from jobs.services.submit import submit_job
from tests.jobs.admin.conftest import SFT, member, told


@pytest.fixture
def child(job, mei):
    """mei's job that waits for her failed one."""
    child = submit_job(Submission(training_type="sft", params=SFT, owner=mei, name="child", depends_on=job))
    Job.objects.filter(pk=job.pk).update(status=Job.Status.FAILED, cause="it broke", advice="Use a smaller batch.")
    return child


def address(job, verb=""):
    return f"/admin/jobs/job/{job.pk}/{verb or 'change'}/"


def test_both_pages_offer_the_chain_and_the_failed_one_says_what_to_do(job, child, mei, viewer, browse):
    for page in (job, child):
        text = browse(mei).get(address(page)).content.decode()
        assert address(job, "release_chain") in text
        assert address(job, "cancel_chain") in text
        assert address(job, "release_chain") not in browse(viewer).get(address(page)).content.decode()
    assert "Use a smaller batch." in browse(viewer).get(address(job)).content.decode()


def test_the_owner_releases_the_chain(job, child, mei, browse):
    client = browse(mei)
    assert told(client.post(address(job, "release_chain"))) == ["1 job waits no longer."]
    child.refresh_from_db()
    assert child.dependency_rule == Job.DependencyRule.ANY_END
    assert address(job, "cancel_chain") not in client.get(address(job)).content.decode()


def test_the_owner_is_asked_and_cancels_the_chain(job, child, mei, browse):
    client = browse(mei)
    assert "child" in client.get(address(job, "cancel_chain")).content.decode()
    child.refresh_from_db()
    assert child.status == Job.Status.QUEUED
    assert told(client.post(address(job, "cancel_chain"))) == ["1 job was cancelled."]
    child.refresh_from_db()
    assert child.status == Job.Status.CANCELLED
    assert told(client.post(address(job, "cancel_chain")))[-1] == f"No job waits for job {job.pk}."


def test_who_may_not_steer_every_job_of_the_chain_does_nothing_to_it(job, child, mei, viewer, browse):
    bob = member("bob", "view_job", "add_job")
    Job.objects.filter(pk=job.pk).update(owner=bob)
    for user in (bob, viewer):
        assert browse(user).post(address(job, "release_chain")).status_code == 403
        assert browse(user).post(address(job, "cancel_chain")).status_code == 403
    assert browse(member("op", "view_job", "change_job")).post(address(job, "release_chain")).status_code == 302
    assert browse(mei).get(address(job, "release_chain")).status_code == 405


def test_the_page_of_a_job_shows_what_it_asked_of_the_queue(mei, browse, db):
    params = SFT | {"max_steps": 3}
    job = submit_job(
        Submission(
            training_type="sft",
            params=params,
            owner=mei,
            device_request="gpu",
            device_count=2,
            time_limit=90,
            priority=-1,
        )
    )
    text = browse(mei).get(address(job)).content.decode()
    for shown in ("2 × Any GPU", "Low", "1 h 30 min, of which 0 min are used"):
        assert shown in text
