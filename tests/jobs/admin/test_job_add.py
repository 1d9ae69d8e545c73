"""Submitting a job in the admin."""

from datetime import UTC, datetime

from jobs.models import Device, Job, Worker
from tests.jobs.admin.conftest import ADD, SFT, errors_of, member, posted, told


def test_a_saved_form_is_a_queued_job_and_says_why_it_waits(mei, browse):
    response = browse(mei).post(ADD, posted(learning_rate="0.001", name="night"))
    job = Job.objects.get()
    assert response.url == f"/admin/jobs/job/{job.pk}/change/"
    assert (job.owner, job.name, job.status) == (mei, "night", "queued")
    assert job.params["learning_rate"] == 0.001
    assert told(response) == [f"Job {job.pk} is queued, no worker is running."]


def test_the_message_names_the_position_once_a_worker_is_there(mei, browse):
    device = Device.objects.create(key="cpu:a", kind="cpu", host="a", name="CPU")
    Worker.objects.create(name="cpu@a", host="a", device=device, queue="q", heartbeat_at=datetime.now(UTC))
    response = browse(mei).post(ADD, posted())
    assert told(response) == [f"Job {Job.objects.get().pk} is queued, position 1 in the queue."]


def test_empty_means_the_default(mei, browse):
    browse(mei).post(ADD, posted(learning_rate="", epochs=""))
    assert Job.objects.get().params["learning_rate"] == 1e-06
    assert Job.objects.get().params["epochs"] == 2


def test_zero_is_not_empty(mei, browse):
    browse(mei).post(ADD, posted(weight_decay="0", use_moe="0", num_workers="0"))
    params = Job.objects.get().params
    assert (params["weight_decay"], params["use_moe"], params["num_workers"]) == (0.0, False, 0)


def test_a_form_sent_twice_makes_one_job(mei, browse):
    client = browse(mei)
    first, second = client.post(ADD, posted()), client.post(ADD, posted())
    assert Job.objects.count() == 1
    assert first.url == second.url


def test_starting_from_a_job_waits_for_it_and_writes_its_folder(mei, browse, job):
    typed = posted(start_from="job", depends_on=str(job.pk), submission_key="")
    browse(mei).post(ADD, typed)
    made = Job.objects.exclude(pk=job.pk).get()
    assert made.depends_on == job
    assert made.params["init_path"] == f"runs/{job.pk}/model"
    assert f"--init_path runs/{job.pk}/model" in " ".join(made.command)


def test_starting_from_a_folder_writes_init_path(mei, browse):
    browse(mei).post(ADD, posted(start_from="folder", start_folder="../dataset"))
    assert Job.objects.get().params["init_path"] == "../dataset"


def test_a_device_that_no_worker_serves_is_disabled_and_says_why(mei, browse):
    client = browse(mei)
    page = client.get(ADD).content.decode()
    assert '<option value="gpu" disabled' in " ".join(page.split())
    assert "Any GPU: no registered worker serves a GPU" in page
    assert errors_of(client.post(ADD, posted(device="gpu")))["device"] == ["no registered worker serves a GPU"]


def test_a_named_device_is_asked_for(mei, browse):
    device = Device.objects.create(key="GPU-1", kind="gpu", host="rack", name="H200")
    Worker.objects.create(name="gpu0@rack", host="rack", device=device, queue="q")
    browse(mei).post(ADD, posted(device=f"device:{device.pk}"))
    assert (Job.objects.get().device_request, Job.objects.get().device) == ("named", device)


def test_not_before_is_read_in_the_time_zone_of_the_browser(mei, browse):
    client = browse(mei)
    client.cookies["timezone"] = "Asia/Shanghai"
    client.post(ADD, posted(not_before="2030-01-01T20:00"))
    assert Job.objects.get().not_before == datetime(2030, 1, 1, 12, 0, tzinfo=UTC)


def test_a_held_job_says_so(mei, browse):
    response = browse(mei).post(ADD, posted(hold="on"))
    assert told(response) == [f"Job {Job.objects.get().pk} is held."]


def test_paths_of_the_literal_form_exist():
    from trainers.paths import resolve_path

    assert resolve_path(SFT["data_path"]).is_file()


def test_a_form_that_was_changed_after_going_back_is_another_job(mei, browse):
    client = browse(mei)
    first, second = client.post(ADD, posted(epochs="1")), client.post(ADD, posted(epochs="2"))
    assert first.url != second.url
    assert sorted(job.params["epochs"] for job in Job.objects.all()) == [1, 2]


def test_a_key_that_another_person_used_makes_a_job_of_ones_own(mei, boss, browse):
    browse(mei).post(ADD, posted())
    browse(boss).post(ADD, posted())
    assert {job.owner for job in Job.objects.all()} == {mei, boss}


def test_the_condition_of_waiting_is_sent_only_with_a_job_to_wait_for(mei, browse):
    browse(mei).post(ADD, {name: value for name, value in posted().items() if name != "dependency_rule"})
    assert Job.objects.get().dependency_rule == "success"


def test_submitting_needs_the_right_to_see_jobs(db, browse, job):
    client = browse(member("adder", "add_job"))
    assert client.get(ADD, {"clone": job.pk}).status_code == 403
    assert client.post(ADD, posted(submission_key="")).status_code == 403
    assert Job.objects.count() == 1
