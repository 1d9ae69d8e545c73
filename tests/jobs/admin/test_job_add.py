"""Submitting a job in the admin."""

from datetime import UTC, datetime

from django.contrib.messages import get_messages

from jobs.models import Device, Job, TrainingConfig, Worker
from tests.jobs.admin.conftest import SFT, member, posted

ADD = "/admin/jobs/job/add/"


def errors_of(response):
    return {name: list(texts) for name, texts in response.context["form"].errors.items()}


def told(response):
    return [str(message) for message in get_messages(response.wsgi_request)]


def test_the_form_of_a_type_shows_only_its_own_fields(boss, browse):
    page = browse(boss).get(ADD, {"_type": "sft"}).content.decode()
    assert 'name="from_weight"' in page
    assert 'name="beta"' not in page
    page = browse(boss).get(ADD, {"_type": "grpo"}).content.decode()
    assert 'name="beta"' in page
    assert 'name="from_weight"' not in page
    assert '<option value="grpo" selected>RL - GRPO</option>' in page


def test_hidden_parameters_are_not_in_the_form(boss, browse):
    form = browse(boss).get(ADD).context["form"]
    assert "from_resume" not in form.fields
    assert "init_path" not in form.fields


def test_another_type_keeps_what_was_typed_in_shared_fields_and_resets_the_rest(boss, browse):
    typed = {
        **posted(training_type="grpo", hidden_size="64", learning_rate="1e-06", name="mine", _reload="1"),
        "start_from": "rule",
    }
    form = browse(boss).post(ADD, typed).context["form"]
    assert form.config_class.type_name == "grpo"
    assert form["hidden_size"].value() == "64"
    assert form["name"].value() == "mine"
    assert form["learning_rate"].value() == "8e-08"
    assert form["data_path"].value() == "../dataset/sft-mini.jsonl"
    assert Job.objects.count() == 0


def test_saving_after_a_change_of_type_shows_the_new_fields_first(boss, browse):
    response = browse(boss).post(ADD, posted(training_type="grpo", _save="1"))
    assert response.status_code == 200
    assert response.context["form"].config_class.type_name == "grpo"
    assert Job.objects.count() == 0


def test_an_unknown_type_is_a_bad_request(boss, browse):
    assert browse(boss).post(ADD, posted(training_type="rm -rf")).status_code == 400


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


def test_each_error_stands_at_its_field(mei, browse):
    response = browse(mei).post(ADD, posted(learning_rate="-1", epochs="two", hidden_size="63"))
    errors = errors_of(response)
    assert errors["learning_rate"] == ["Input should be greater than 0 (got '-1')"]
    assert errors["epochs"][0].startswith("Input should be a valid integer")
    assert errors["num_attention_heads"][0].startswith("hidden_size 63 must be an even multiple")
    assert Job.objects.count() == 0


def test_a_parameter_of_another_type_is_refused_by_name(mei, browse):
    errors = errors_of(browse(mei).post(ADD, posted(beta="0.1")))
    assert errors["__all__"] == ["beta is not a parameter of SFT here; nothing was submitted."]
    assert Job.objects.count() == 0


def test_hidden_parameters_and_unknown_keys_are_refused_by_name(mei, browse):
    errors = errors_of(browse(mei).post(ADD, posted(init_path="../out", from_resume="1", trust_remote_code="1")))
    assert [text.split()[0] for text in errors["__all__"]] == ["from_resume", "init_path", "trust_remote_code"]


def test_text_that_looks_like_a_flag_is_refused(mei, browse):
    errors = errors_of(browse(mei).post(ADD, posted(train_project="--trust_remote_code")))
    assert errors["train_project"][0].startswith("must not begin with '-'")


def test_a_path_outside_the_allowed_folders_is_an_error_at_its_field(mei, browse):
    errors = errors_of(browse(mei).post(ADD, posted(data_path="/etc/passwd", save_dir="../../elsewhere")))
    assert "outside the allowed folders" in errors["data_path"][0]
    assert "outside the allowed folders" in errors["save_dir"][0]


def test_a_missing_path_is_a_warning_that_can_be_confirmed(mei, browse):
    client = browse(mei)
    response = client.post(ADD, posted(data_path="../dataset/nowhere.jsonl"))
    assert response.context["form"].warnings == {"data_path": "../dataset/nowhere.jsonl is not on this host"}
    assert 'name="queue_anyway"' in response.content.decode()
    assert Job.objects.count() == 0
    client.post(ADD, posted(data_path="../dataset/nowhere.jsonl", queue_anyway="on"))
    assert Job.objects.get().params["data_path"] == "../dataset/nowhere.jsonl"


def test_missing_weights_are_a_warning_only_when_the_job_starts_from_them(mei, browse, job):
    client = browse(mei)
    response = client.post(ADD, posted(from_weight="nobody_made"))
    told_of = "the weights ../out/nobody_made_512.pth are not on this host"
    assert response.context["form"].warnings == {"from_weight": told_of}
    client.post(ADD, posted(from_weight="nobody_made", start_from="job", depends_on=str(job.pk)))
    assert Job.objects.latest("pk").params["init_path"] == f"{job.run_dir}/model"


def test_starting_from_a_job_waits_for_it_and_writes_its_folder(mei, browse, job):
    typed = posted(start_from="job", depends_on=str(job.pk), submission_key="")
    browse(mei).post(ADD, typed)
    made = Job.objects.exclude(pk=job.pk).get()
    assert made.depends_on == job
    assert made.params["init_path"] == f"runs/{job.pk}/model"
    assert f"--init_path runs/{job.pk}/model" in " ".join(made.command)


def test_starting_from_a_job_needs_the_job(mei, browse):
    errors = errors_of(browse(mei).post(ADD, posted(start_from="job")))
    assert errors["depends_on"] == ["Name the job whose weights to start from."]


def test_starting_from_a_folder_writes_init_path(mei, browse):
    browse(mei).post(ADD, posted(start_from="folder", start_folder="../dataset"))
    assert Job.objects.get().params["init_path"] == "../dataset"


def test_a_folder_without_its_choice_is_not_dropped_in_silence(mei, browse):
    errors = errors_of(browse(mei).post(ADD, posted(start_folder="../dataset")))
    assert "start_folder" in errors


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


def test_the_preview_is_the_command_that_is_frozen(mei, browse):
    client = browse(mei)
    preview = client.post("/admin/jobs/job/preview/", posted(learning_rate="0.001")).json()
    client.post(ADD, posted(learning_rate="0.001"))
    job = Job.objects.get()
    assert preview["command"].replace("runs/N", f"runs/{job.pk}") == " ".join(job.command)
    assert preview["errors"] == {}


def test_the_preview_of_a_wrong_form_names_the_field(mei, browse):
    preview = browse(mei).post("/admin/jobs/job/preview/", posted(epochs="0")).json()
    assert preview["command"] == ""
    assert preview["errors"]["epochs"] == ["Input should be greater than or equal to 1 (got '0')"]


def test_the_page_shows_the_default_grpo_command(boss, browse):
    command = browse(boss).get(ADD).context["command"]
    flags = "--beta 0.02 --num_generations 8 --reasoning 1 --reward_model_path ../../internlm2-1_8b-reward"
    assert flags in command


def test_a_saved_config_fills_the_form(boss, browse):
    smoke = TrainingConfig.objects.get(training_type="grpo", name="CPU smoke test")
    response = browse(boss).get(ADD, {"config": smoke.pk})
    form = response.context["form"]
    assert (form["hidden_size"].value(), form["reward_model_path"].value()) == ("64", "none")
    assert form["reasoning"].value() == "0"
    assert "full_sft_64.pth" in told(response)[0]


def test_a_clone_is_filled_and_names_what_no_longer_exists(boss, browse, job):
    Job.objects.filter(pk=job.pk).update(params=job.params | {"epochs": 7, "magic": 1})
    response = browse(boss).get(ADD, {"clone": job.pk})
    form = response.context["form"]
    assert (form["name"].value(), form["epochs"].value()) == ("first", "7")
    assert told(response) == ["These parameters no longer exist and were left out: magic."]


def test_a_clone_of_a_job_that_started_from_another_keeps_that(mei, browse, job):
    client = browse(mei)
    client.post(ADD, posted(start_from="job", depends_on=str(job.pk), submission_key=""))
    second = Job.objects.exclude(pk=job.pk).get()
    form = client.get(ADD, {"clone": second.pk}).context["form"]
    assert (form["start_from"].value(), form["depends_on"].value()) == ("job", job.pk)
    assert not form["start_folder"].value()


def test_labels_are_chinese_for_a_chinese_reader(boss, browse):
    page = browse(boss).get(ADD, headers={"accept-language": "zh-hans"}).content.decode()
    assert "学习率" in page
    assert "Learning rate" not in page


def test_who_may_not_add_cannot_open_send_or_preview(viewer, browse):
    client = browse(viewer)
    assert client.get(ADD).status_code == 403
    assert client.post(ADD, posted()).status_code == 403
    assert client.post("/admin/jobs/job/preview/", posted()).status_code == 403
    assert Job.objects.count() == 0


def test_the_page_works_without_a_session_only_by_signing_in(db, client):
    assert client.get(ADD).url.startswith("/admin/login/")


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


def test_a_path_that_no_file_can_have_is_an_error_at_its_field(mei, browse):
    errors = errors_of(browse(mei).post(ADD, posted(data_path="a" * 5000, queue_anyway="on")))
    assert "cannot be a path here" in errors["data_path"][0]


def test_a_time_outside_the_calendar_is_an_error_at_its_field(mei, browse):
    client = browse(mei)
    client.cookies["timezone"] = "Asia/Shanghai"
    for time in ("0001-01-01T00:00", "9999-12-31T23:59"):
        assert "not_before" in errors_of(client.post(ADD, posted(not_before=time)))


def test_a_job_to_wait_for_that_is_no_job_is_an_error_at_its_field(mei, browse):
    client = browse(mei)
    for number in ("²", "9" * 5000, "99"):
        assert "depends_on" in errors_of(client.post(ADD, posted(depends_on=number)))


def test_the_condition_of_waiting_is_sent_only_with_a_job_to_wait_for(mei, browse):
    browse(mei).post(ADD, {name: value for name, value in posted().items() if name != "dependency_rule"})
    assert Job.objects.get().dependency_rule == "success"


def test_a_number_in_the_address_that_is_none_is_not_found(boss, browse):
    client = browse(boss)
    for number in ("²", "x", "9" * 5000):
        assert client.get(ADD, {"clone": number}).status_code == 404
        assert client.get(ADD, {"config": number}).status_code == 404


def test_a_clone_says_that_it_does_not_wait_for_a_job_that_failed(mei, browse, job):
    client = browse(mei)
    client.post(ADD, posted(depends_on=str(job.pk), dependency_rule="any_end"))
    second = Job.objects.exclude(pk=job.pk).get()
    Job.objects.filter(pk=job.pk).update(status="failed")
    response = client.get(ADD, {"clone": second.pk})
    assert told(response)[-1:] == [f"Job {job.pk} ended without success, so the new job does not wait for it."]


def test_submitting_needs_the_right_to_see_jobs(db, browse, job):
    client = browse(member("adder", "add_job"))
    assert client.get(ADD, {"clone": job.pk}).status_code == 403
    assert client.post(ADD, posted(submission_key="")).status_code == 403
    assert Job.objects.count() == 1


def test_a_missing_path_says_that_nothing_was_submitted_yet(mei, browse):
    page = browse(mei).post(ADD, posted(data_path="../dataset/nowhere.jsonl")).content.decode()
    assert "Nothing was submitted yet" in page
