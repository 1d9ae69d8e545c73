"""What the job page fetches: points, samples, files."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from jobs.admin.curves import curve_points, thinned
from jobs.admin.job_data import by_reward
from jobs.admin.job_header import time_left
from jobs.models import Artifact, Attempt, Job, Metric, Sample
from tests.jobs.admin.conftest import member

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def log_steps(job, steps, **values):
    Metric.objects.bulk_create(
        Metric(job=job, step=step, time=NOON + timedelta(seconds=2 * step), values={"loss": 1.0, **values})
        for step in steps
    )


def live(client, job, **query):
    return client.get(f"/admin/jobs/job/{job.pk}/live/", query).json()


def test_only_points_after_the_last_known_step_travel(boss, job, browse):
    log_steps(job, [0, 10, 20])
    state = live(browse(boss), job, after=10, restarts=0)
    assert [point["step"] for point in state["points"]] == [20]
    assert state["fresh"] is False


def test_a_restart_sends_all_points_again(boss, job, browse):
    log_steps(job, [0, 10])
    Attempt.objects.create(job=job, number=1, token=Job.new_token(), started_at=NOON)
    state = live(browse(boss), job, after=10, restarts=0)
    assert [point["step"] for point in state["points"]] == [0, 10]
    assert state["fresh"] is True


def test_a_long_run_is_at_most_a_thousand_points_with_every_evaluation(job):
    log_steps(job, range(1, 3001))
    Metric.objects.filter(job=job, step=1234).update(values={"loss": 1.0, "eval/greedy_accuracy": 0.5})
    points = curve_points(job, after=-1)
    steps = [point["step"] for point in points]
    assert len(steps) <= 1000
    assert (steps[0], steps[-1]) == (1, 3000)
    assert 1234 in steps
    assert steps == sorted(set(steps))


def test_thinning_keeps_the_ends_and_the_spacing():
    assert thinned([1, 2, 3], 5) == [1, 2, 3]
    assert thinned(list(range(0, 101)), 5) == [0, 25, 50, 75, 100]


def test_the_time_left_follows_the_pace_of_the_last_steps(job):
    log_steps(job, range(1, 11))
    Job.objects.filter(pk=job.pk).update(status="running", step=10, total_steps=40)
    job.refresh_from_db()
    assert time_left(job) == "about 1 min 00 s left"


def test_completions_are_ordered_by_reward_and_those_without_come_last():
    completions = [{"reward": None}, {"reward": -1.0}, {"reward": 2.0}]
    assert [completion["reward"] for completion in by_reward(completions)] == [2.0, -1.0, None]


def test_samples_of_a_step_show_each_reward_and_escape_the_text(boss, job, browse):
    completions = [
        {"text": "44", "rewards": {"answer": 0.0}, "reward": 0.0, "advantage": -1.0, "length": 2, "truncated": False},
        {
            "text": "<b>45</b>",
            "rewards": {"answer": 1.0},
            "reward": 1.0,
            "advantage": 1.0,
            "length": 9,
            "truncated": True,
        },
    ]
    Sample.objects.create(job=job, step=10, kind="train", index=0, prompt="07+38", answer="45", completions=completions)
    Sample.objects.create(job=job, step=20, kind="eval", index=0, prompt="later", completions=[])
    client = browse(boss)
    page = client.get(f"/admin/jobs/job/{job.pk}/samples/", {"at": "train:10"}).content.decode()
    assert page.index("&lt;b&gt;45") < page.index(">44<")
    assert "truncated" in page
    assert "<b>1.000</b>" in page
    assert "later" in client.get(f"/admin/jobs/job/{job.pk}/samples/").content.decode()


def test_an_artifact_is_downloaded_by_its_row(boss, job, browse, settings, tmp_path):
    artifacts = {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": str(tmp_path)}}
    settings.STORAGES = settings.STORAGES | {"artifacts": artifacts}
    (tmp_path / str(job.pk)).mkdir()
    (tmp_path / str(job.pk) / "result.json").write_text("{}")
    row = Artifact.objects.create(job=job, path="result.json", size=2)
    response = browse(boss).get(f"/admin/jobs/job/{job.pk}/artifact/", {"id": row.pk})
    assert b"".join(response.streaming_content) == b"{}"
    assert response["Content-Disposition"] == f'attachment; filename="job-{job.pk}-result.json"'


def test_a_file_that_was_removed_leads_back_to_the_job_with_its_name(boss, job, browse, settings, tmp_path):
    artifacts = {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": str(tmp_path)}}
    settings.STORAGES = settings.STORAGES | {"artifacts": artifacts}
    row = Artifact.objects.create(job=job, path="result.json", size=2)
    response = browse(boss).get(f"/admin/jobs/job/{job.pk}/artifact/", {"id": row.pk}, follow=True)
    assert response.redirect_chain == [(f"/admin/jobs/job/{job.pk}/change/", 302)]
    assert f"{job.pk}/result.json is no longer there." in response.content.decode()


def test_a_link_that_leads_out_of_the_run_folders_is_not_followed(boss, job, browse, settings, tmp_path):
    runs = tmp_path / "runs"
    artifacts = {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": str(runs)}}
    settings.STORAGES = settings.STORAGES | {"artifacts": artifacts}
    (tmp_path / "secret").write_text("key")
    (runs / str(job.pk)).mkdir(parents=True)
    Path(runs / str(job.pk) / "log.txt").symlink_to(tmp_path / "secret")
    row = Artifact.objects.create(job=job, path="log.txt", size=3)
    assert browse(boss).get(f"/admin/jobs/job/{job.pk}/artifact/", {"id": row.pk}).status_code == 404


def test_an_artifact_of_another_job_is_not_found(boss, mei, job, browse):
    row = Artifact.objects.create(job=job, path="result.json", size=2)
    other = Job.objects.create(owner=mei, training_type="sft", title="SFT")
    assert browse(boss).get(f"/admin/jobs/job/{other.pk}/artifact/", {"id": row.pk}).status_code == 404


def test_who_may_not_see_jobs_fetches_nothing(stranger, job, browse):
    client = browse(stranger)
    for view in ("live", "samples", "artifact"):
        assert client.get(f"/admin/jobs/job/{job.pk}/{view}/").status_code == 403


def test_a_file_number_that_is_none_is_not_found(job, mei, browse):
    client = browse(mei)
    for number in ("²", "x", "", "9" * 5000):
        assert client.get(f"/admin/jobs/job/{job.pk}/artifact/", {"id": number}).status_code == 404


def test_who_may_change_jobs_sees_their_pages(job, browse):
    client = browse(member("changer", "change_job"))
    assert client.get("/admin/jobs/job/").status_code == 200
    assert client.get(f"/admin/jobs/job/{job.pk}/change/").status_code == 200
