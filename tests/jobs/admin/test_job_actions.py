"""Cancel, resume, hold and release."""

import pytest
from django.test import Client

from jobs.models import Event, Job
from tests.jobs.admin.conftest import member, told


def act(client, job, action, **values):
    return client.post(f"/admin/jobs/job/{job.pk}/{action}/", values)


def test_the_owner_cancels_a_waiting_job_after_a_question(mei, job, browse):
    client = browse(mei)
    question = client.get(f"/admin/jobs/job/{job.pk}/cancel/")
    assert "it leaves the queue" in question.content.decode()
    job.refresh_from_db()
    assert job.status == "queued"
    assert told(act(client, job, "cancel")) == [f"Job {job.pk} is cancelled."]
    job.refresh_from_db()
    assert (job.status, job.cause) == ("cancelled", "cancelled by mei")


def test_a_running_job_is_asked_to_end(mei, job, browse):
    Job.objects.filter(pk=job.pk).update(status="running", checkpoint_step=40)
    client = browse(mei)
    assert (
        "The last usable checkpoint is at step 40" in client.get(f"/admin/jobs/job/{job.pk}/cancel/").content.decode()
    )
    assert told(act(client, job, "cancel")) == [f"Job {job.pk} is being cancelled."]
    job.refresh_from_db()
    assert (job.status, job.cancel_requested_by) == ("running", mei)


def test_a_verb_that_no_longer_applies_says_so(mei, job, browse):
    Job.objects.filter(pk=job.pk).update(status="completed")
    assert told(act(browse(mei), job, "cancel")) == [f"Job {job.pk} is already completed."]


def test_hold_and_release_change_the_status(mei, job, browse):
    client = browse(mei)
    act(client, job, "hold")
    job.refresh_from_db()
    assert job.status == "held"
    act(client, job, "release")
    job.refresh_from_db()
    assert job.status == "queued"
    assert set(job.events.values_list("kind", "actor__username")) == {
        ("submitted", "mei"),
        ("held", "mei"),
        ("released", "mei"),
    }


def test_resume_raises_epochs_and_changes_the_learning_rate(mei, job, browse):
    Job.objects.filter(pk=job.pk).update(status="completed", checkpoint_step=450)
    act(browse(mei), job, "resume", epochs="5", learning_rate="0.002", max_steps="")
    job.refresh_from_db()
    assert (job.status, job.resume) == ("queued", True)
    assert (job.params["epochs"], job.params["learning_rate"], job.params["max_steps"]) == (5, 0.002, None)
    assert "--epochs 5" in " ".join(job.command)
    assert Event.objects.get(kind="resumed").detail == "epochs 5, learning_rate 0.002"


def test_resume_with_nothing_changed_keeps_the_parameters(mei, job, browse):
    Job.objects.filter(pk=job.pk).update(status="failed")
    act(browse(mei), job, "resume", epochs="2", learning_rate="1e-06", max_steps="")
    job.refresh_from_db()
    assert (job.status, job.params["epochs"]) == ("queued", 2)


def test_resume_shows_the_time_limit_and_changes_or_lifts_it(mei, job, browse):
    Job.objects.filter(pk=job.pk).update(status="timed_out", time_limit=480)
    client = browse(mei)
    page = client.get(f"/admin/jobs/job/{job.pk}/resume/")
    assert page.context["form"]["time_limit"].value() == 480
    same = {"epochs": "2", "learning_rate": "1e-06", "max_steps": ""}
    act(client, job, "resume", **same, time_limit="600")
    job.refresh_from_db()
    assert (job.status, job.time_limit, job.params["epochs"]) == ("queued", 600, 2)
    assert Event.objects.get(kind="resumed").detail == "time_limit 600"
    Job.objects.filter(pk=job.pk).update(status="timed_out")
    act(client, job, "resume", **same, time_limit="")
    job.refresh_from_db()
    assert job.time_limit is None


@pytest.mark.parametrize("minutes", ["0", "-1", "1.5", "an hour", "527041"])
def test_a_wrong_time_limit_stands_at_its_field(minutes, mei, job, browse):
    Job.objects.filter(pk=job.pk).update(status="failed")
    form = act(browse(mei), job, "resume", epochs="2", time_limit=minutes).context["form"]
    assert list(form.errors) == ["time_limit"]


def test_a_wrong_resume_stands_at_its_field(mei, job, browse):
    Job.objects.filter(pk=job.pk).update(status="failed")
    form = act(browse(mei), job, "resume", epochs="0", learning_rate="", max_steps="").context["form"]
    assert list(form.errors) == ["epochs"]


@pytest.mark.parametrize(
    ("action", "before", "after"),
    [
        ("cancel", "queued", "cancelled"),
        ("resume", "failed", "queued"),
        ("hold", "queued", "held"),
        ("release", "held", "queued"),
    ],
)
def test_only_the_owner_or_who_may_change_any_job_acts(action, before, after, job, viewer, boss, browse):
    Job.objects.filter(pk=job.pk).update(status=before)
    colleague = member("colleague", "view_job", "add_job")
    for person in (viewer, colleague):
        assert act(browse(person), job, action, epochs="3").status_code == 403
    job.refresh_from_db()
    assert job.status == before
    act(browse(boss), job, action, epochs="3")
    job.refresh_from_db()
    assert job.status == after


@pytest.mark.parametrize("action", ["hold", "release"])
def test_a_link_changes_nothing(action, mei, job, browse):
    assert browse(mei).get(f"/admin/jobs/job/{job.pk}/{action}/").status_code == 405


@pytest.mark.parametrize("action", ["cancel", "resume", "hold", "release"])
def test_a_post_from_elsewhere_is_refused(action, mei, job):
    client = Client(enforce_csrf_checks=True)
    client.force_login(mei)
    assert act(client, job, action).status_code == 403
    job.refresh_from_db()
    assert job.status == "queued"
