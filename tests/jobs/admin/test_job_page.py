"""The page of one job."""

import uuid
from datetime import UTC, datetime

from jobs.admin.job_page import result_rows
from jobs.models import Artifact, Attempt, Event, Job
from jobs.services.submission import Submission
from jobs.services.submit import submit_job

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def page(client, job):
    return client.get(f"/admin/jobs/job/{job.pk}/change/")


def test_the_default_grpo_job_shows_its_command(boss, browse):
    job = submit_job(Submission(training_type="grpo", params={}, owner=boss))
    flags = "--beta 0.02 --num_generations 8 --reasoning 1 --reward_model_path ../../internlm2-1_8b-reward"
    assert flags in page(browse(boss), job).content.decode()


def test_parameters_that_differ_from_their_default_are_marked(boss, job, browse):
    rows = {row.name: row for row in page(browse(boss), job).context["parameters"]}
    assert (rows["from_weight"].value, rows["from_weight"].default, rows["from_weight"].changed) == (
        "none",
        "pretrain",
        True,
    )
    assert rows["epochs"].changed is False


def test_a_job_whose_type_no_longer_exists_still_opens(boss, job, browse):
    Job.objects.filter(pk=job.pk).update(training_type="a2c", title="A2C", params={"lambda": 3}, status="failed")
    response = page(browse(boss), job)
    assert response.status_code == 200
    assert "The training type a2c no longer exists" in response.content.decode()
    assert [(row.name, row.value) for row in response.context["parameters"]] == [("lambda", "3")]


def test_a_job_whose_parameter_no_longer_exists_still_opens_and_cannot_resume(boss, job, browse):
    Job.objects.filter(pk=job.pk).update(params=job.params | {"magic": 1}, status="failed")
    client = browse(boss)
    assert "No longer known" in page(client, job).content.decode()
    response = client.get(f"/admin/jobs/job/{job.pk}/resume/", follow=True)
    assert "has parameters that no longer exist; clone it instead" in response.content.decode()


def test_result_files_attempts_and_events_are_shown(boss, job, browse):
    Artifact.objects.create(job=job, path="model/model.safetensors", size=2048)
    Attempt.objects.create(
        job=job,
        number=1,
        token=uuid.uuid4(),
        command=["python", "x"],
        outcome="lost",
        cause="host gone",
        started_at=NOON,
    )
    Event.objects.create(job=job, actor=boss, kind="requeued", detail="after the host went")
    Job.objects.filter(pk=job.pk).update(result={"steps": 7, "first": {"loss": 1.5}, "last": {"loss": 0.25}})
    text = page(browse(boss), job).content.decode()
    for shown in (
        "model/model.safetensors",
        "2.0",
        "host gone",
        "python x",
        "after the host went",
        "1.5 → 0.25",
    ):
        assert shown in text


def test_times_are_in_the_time_zone_of_the_browser(boss, job, browse):
    Job.objects.filter(pk=job.pk).update(created_at=NOON)
    client = browse(boss)
    client.cookies["timezone"] = "Asia%2FShanghai"
    assert "2026-01-01 20:00" in page(client, job).content.decode()
    client.cookies["timezone"] = "../../etc/passwd"
    assert "2026-01-01 12:00" in page(client, job).content.decode()


def test_a_name_is_text_not_markup(boss, job, browse):
    Job.objects.filter(pk=job.pk).update(name="<img src=x>", cause="<script>")
    text = page(browse(boss), job).content.decode()
    assert "<img src=x>" not in text
    assert "&lt;img src=x&gt;" in text


def test_a_viewer_sees_the_page_without_buttons_that_change_it(viewer, job, browse):
    response = page(browse(viewer), job)
    assert response.status_code == 200
    text = response.content.decode()
    for action in ("cancel", "hold", "resume"):
        assert f"/{job.pk}/{action}/" not in text
    assert "?clone=" not in text


def test_a_job_that_is_not_there_is_not_found(boss, browse):
    client = browse(boss)
    assert client.get("/admin/jobs/job/999/change/").status_code == 404
    assert client.get("/admin/jobs/job/nine/change/").status_code == 404
    assert client.get("/admin/jobs/trainingconfig/nine/change/").status_code == 404


def test_who_may_not_see_jobs_sees_no_page(stranger, job, browse):
    assert page(browse(stranger), job).status_code == 403


def test_first_and_last_values_stand_side_by_side_and_none_is_left_out():
    result = {"steps": 7, "error": None, "first": {"loss": 2.0}, "last": {"loss": 1.0, "kl": 0.5}, "eval_before": None}
    result |= {"versions": {"torch": "2.9"}}
    assert result_rows(result) == [
        ("steps", "7"),
        ("versions torch", "2.9"),
        ("loss", "2 → 1"),
        ("kl", "– → 0.5"),
    ]


def test_an_evaluation_that_stands_among_the_metrics_is_shown_once():
    result = {"eval_before": {"eval/accuracy": 0.5}, "eval_after": {"eval/accuracy": 0.75}}
    result |= {"first": {"eval/accuracy": 0.5, "loss": 2.0}, "last": {"eval/accuracy": 0.75, "loss": 1.0}}
    assert result_rows(result) == [("eval/accuracy", "0.5 → 0.75"), ("loss", "2 → 1")]
