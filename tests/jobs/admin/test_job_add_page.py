"""The page on which a job is added: its fields, what fills them, the preview."""

from jobs.models import Job, TrainingConfig
from tests.jobs.admin.conftest import ADD, posted, told


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


def test_a_clone_says_that_it_does_not_wait_for_a_job_that_failed(mei, browse, job):
    client = browse(mei)
    client.post(ADD, posted(depends_on=str(job.pk), dependency_rule="any_end"))
    second = Job.objects.exclude(pk=job.pk).get()
    Job.objects.filter(pk=job.pk).update(status="failed")
    response = client.get(ADD, {"clone": second.pk})
    assert told(response)[-1:] == [f"Job {job.pk} ended without success, so the new job does not wait for it."]
