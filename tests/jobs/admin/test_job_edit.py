"""The page on which a waiting job is edited."""

from datetime import UTC, datetime

import pytest
from django.test import Client

from jobs.models import Job
from jobs.services.submission import Submission
from jobs.services.submit import submit_job
from tests.jobs.admin.conftest import ADD, SFT, errors_of, member, posted, told


def page_of(job):
    return f"/admin/jobs/job/{job.pk}/edit/"


def edited(**values):
    """Return the posted form of mei's job, changed by ``values``."""
    return {name: value for name, value in posted(name="first", **values).items() if name != "submission_key"}


def test_the_owner_changes_a_waiting_job(mei, job, browse):
    response = browse(mei).post(page_of(job), edited(epochs="7", time_limit="90"))
    assert response.url == f"/admin/jobs/job/{job.pk}/change/"
    job.refresh_from_db()
    assert (job.params["epochs"], job.time_limit, job.status) == (7, 90, "queued")
    assert job.events.get(kind="edited").detail == "time_limit none → 90, epochs 2 → 7"
    assert told(response) == [f"Job {job.pk} is queued, no worker is running."]
    assert Job.objects.count() == 1


def test_the_form_opens_with_what_the_job_asks_for_and_sent_unchanged_changes_nothing(mei, browse, job):
    client = browse(mei)
    wishes = {"priority": "-1", "time_limit": "30", "not_before": "2030-01-01T20:00", "device_count": "1"}
    client.post(ADD, posted(start_from="job", depends_on=str(job.pk), submission_key="", **wishes))
    second = Job.objects.exclude(pk=job.pk).get()
    form = client.get(page_of(second)).context["form"]
    shown = {field.html_name: field.value() for field in form}
    assert (shown["start_from"], shown["depends_on"], shown["priority"], shown["time_limit"]) == ("job", job.pk, -1, 30)
    before = Job.objects.filter(pk=second.pk).values().get()
    typed = {name: str(value) for name, value in shown.items() if value not in (None, "", False)}
    assert client.post(page_of(second), typed).status_code == 302
    assert Job.objects.filter(pk=second.pk).values().get() == before
    assert before["not_before"] == datetime(2030, 1, 1, 20, tzinfo=UTC)


def test_the_page_shows_the_fixed_type_and_the_command_with_the_jobs_number(mei, job, browse):
    response = browse(mei).get(page_of(job))
    page = response.content.decode()
    assert f"Edit job {job.pk}" in page
    assert '<select name="training_type"' not in page
    assert 'name="hold"' not in page
    assert response.context["command"] == " ".join(job.command)


def test_the_preview_answers_for_the_edited_job(mei, job, browse):
    client = browse(mei)
    answer = client.post(f"{page_of(job)}preview/", edited(epochs="7")).json()
    assert f"--run_dir runs/{job.pk} " in answer["command"]
    assert "--epochs 7" in answer["command"]
    assert list(client.post(f"{page_of(job)}preview/", edited(epochs="0")).json()["errors"]) == ["epochs"]
    job.refresh_from_db()
    assert job.params["epochs"] == 2


def test_each_error_stands_at_its_field(mei, job, browse):
    response = browse(mei).post(page_of(job), edited(epochs="0", time_limit="0", beta="1"))
    assert set(errors_of(response)) == {"epochs", "time_limit", "__all__"}


def test_a_job_with_a_checkpoint_says_what_can_change_and_refuses_the_rest_at_its_field(mei, job, browse):
    Job.objects.filter(pk=job.pk).update(checkpoint_step=40)
    client = browse(mei)
    assert "continues from its checkpoint at step 40" in client.get(page_of(job)).content.decode()
    errors = errors_of(client.post(page_of(job), edited(seed="7", start_from="folder", start_folder="../dataset")))
    refused = ["cannot be changed: the job continues from its checkpoint"]
    assert errors == {"seed": refused, "start_folder": refused}
    assert client.post(page_of(job), edited(epochs="9")).status_code == 302


@pytest.mark.parametrize(("status", "word"), [("running", "running"), ("completed", "already completed")])
@pytest.mark.parametrize("method", ["get", "post"])
def test_a_job_that_does_not_wait_is_only_shown(status, word, method, mei, job, browse):
    Job.objects.filter(pk=job.pk).update(status=status)
    response = getattr(browse(mei), method)(page_of(job), edited(epochs="7"))
    assert response.url == f"/admin/jobs/job/{job.pk}/change/"
    assert told(response) == [f"Job {job.pk} is {word}."]
    job.refresh_from_db()
    assert job.params["epochs"] == 2


def test_an_operator_edits_a_job_that_stays_its_owners(boss, mei, job, browse):
    browse(boss).post(page_of(job), edited(priority="1"))
    job.refresh_from_db()
    assert (job.owner, job.priority) == (mei, 1)
    assert job.events.get(kind="edited").actor == boss


def test_who_may_not_queue_high_keeps_what_an_operator_gave(mei, job, browse):
    Job.objects.filter(pk=job.pk).update(priority=1)
    client = browse(mei)
    form = client.get(page_of(job)).context["form"]
    assert form["priority"].value() == 1
    client.post(page_of(job), edited(priority="1", epochs="7"))
    job.refresh_from_db()
    assert (job.priority, job.params["epochs"]) == (1, 7)
    client.post(page_of(job), edited(priority="0"))
    assert list(errors_of(client.post(page_of(job), edited(priority="1")))) == ["priority"]


def test_a_circle_is_refused_at_its_field(mei, job, browse):
    child = submit_job(Submission(training_type="sft", params=SFT, owner=mei, depends_on=job))
    errors = errors_of(browse(mei).post(page_of(job), edited(depends_on=str(child.pk))))
    assert errors == {"depends_on": ["the job would wait for itself"]}


def test_a_job_keeps_the_parent_that_failed_and_the_device_that_nobody_serves(mei, job, browse):
    parent = submit_job(Submission(training_type="sft", params=SFT, owner=mei))
    Job.objects.filter(pk=parent.pk).update(status="failed")
    Job.objects.filter(pk=job.pk).update(depends_on=parent, device_request="label", device_label="gone")
    client = browse(mei)
    response = client.get(page_of(job))
    assert told(response) == []
    assert response.context["form"]["depends_on"].value() == parent.pk
    client.post(page_of(job), edited(depends_on=str(parent.pk), device="label:gone", epochs="7"))
    job.refresh_from_db()
    assert (job.depends_on, job.device_label, job.params["epochs"]) == (parent, "gone", 7)


def test_a_type_that_no_longer_exists_cannot_be_edited(mei, job, browse):
    Job.objects.filter(pk=job.pk).update(training_type="magic")
    response = browse(mei).get(page_of(job))
    assert told(response) == ["The training type magic no longer exists; the job can only be cancelled."]


def test_only_the_owner_or_who_may_change_any_job_edits(job, viewer, stranger, browse):
    colleague = member("colleague", "view_job", "add_job")
    for person in (viewer, stranger, colleague):
        client = browse(person)
        assert client.get(page_of(job)).status_code == 403
        assert client.post(page_of(job), edited(epochs="7")).status_code == 403
        assert client.post(f"{page_of(job)}preview/", edited()).status_code == 403
    job.refresh_from_db()
    assert job.params["epochs"] == 2
    browse(member("editor", "view_job", "change_job")).post(page_of(job), edited(epochs="7"))
    job.refresh_from_db()
    assert job.params["epochs"] == 7


def test_a_post_from_elsewhere_is_refused(mei, job):
    client = Client(enforce_csrf_checks=True)
    client.force_login(mei)
    assert client.post(page_of(job), edited(epochs="7")).status_code == 403


def test_the_button_is_there_while_the_job_waits(mei, viewer, job, browse):
    change = f"/admin/jobs/job/{job.pk}/change/"
    assert page_of(job) in browse(mei).get(change).content.decode()
    assert page_of(job) not in browse(viewer).get(change).content.decode()
    Job.objects.filter(pk=job.pk).update(status="held")
    assert page_of(job) in browse(mei).get(change).content.decode()
    Job.objects.filter(pk=job.pk).update(status="running")
    assert page_of(job) not in browse(mei).get(change).content.decode()
