"""Saved configurations."""

import pytest
from django.contrib.messages import get_messages

from jobs.models import Job, TrainingConfig
from tests.jobs.admin.conftest import SFT
from trainers.configs import TRAINING_TYPES

LIST = "/admin/jobs/trainingconfig/"
ADD = f"{LIST}add/"


def posted(**values):
    return {"training_type": "sft", "shown_type": "sft", "config_name": "mine", **SFT, **values}


def builtin(training_type, name):
    return TrainingConfig.objects.get(training_type=training_type, name=name, builtin=True)


@pytest.mark.parametrize("training_type", TRAINING_TYPES)
@pytest.mark.parametrize("name", ["Script defaults", "CPU smoke test"])
def test_every_type_has_its_builtin_configs_and_they_are_valid(db, training_type, name):
    saved = builtin(training_type, name)
    assert saved.owner is None
    assert saved.config().type_name == training_type


def test_script_defaults_are_the_defaults(db):
    assert builtin("grpo", "Script defaults").config() == TRAINING_TYPES["grpo"]()


def test_the_grpo_smoke_test_starts_from_what_the_sft_one_leaves(db):
    sft, grpo = builtin("sft", "CPU smoke test").config(), builtin("grpo", "CPU smoke test").config()
    assert (sft.save_dir, sft.save_weight, sft.hidden_size) == ("../out/smoke", "full_sft", 64)
    assert (grpo.save_dir, grpo.hidden_size, grpo.num_hidden_layers) == (sft.save_dir, 64, sft.num_hidden_layers)
    assert (grpo.reasoning, grpo.reward_model_path, grpo.max_steps) == (False, "none", 5)


def test_every_smoke_test_that_names_weights_finds_them_where_another_leaves_them(db):
    pretrain, sft, lora = (builtin(name, "CPU smoke test").config() for name in ("pretrain", "sft", "lora"))
    assert (pretrain.from_weight, pretrain.save_weight) == ("none", "pretrain")
    assert (sft.from_weight, sft.save_weight, lora.from_weight) == ("none", "full_sft", "full_sft")
    assert {config.save_dir for config in (pretrain, sft, lora)} == {"../out/smoke"}
    assert {config.model_size() for config in (pretrain, sft, lora)} == {sft.model_size()}


def test_reasoning_is_sft_as_train_reason_did_it(db):
    config = builtin("sft", "Reasoning").config()
    assert (config.save_weight, config.from_weight, config.save_dir) == ("reason", "dpo", "../out")
    assert (config.epochs, config.batch_size, config.learning_rate) == (1, 8, 1e-6)
    assert (config.accumulation_steps, config.grad_clip) == (1, 1.0)
    assert (config.log_interval, config.save_interval, config.max_seq_len) == (100, 100, 720)
    assert config.data_path == "../dataset/r1_mix_1024.jsonl"


def test_a_person_keeps_their_own(mei, browse):
    browse(mei).post(ADD, posted(learning_rate="0.01"))
    saved = TrainingConfig.objects.get(name="mine")
    assert (saved.owner, saved.builtin) == (mei, False)
    assert saved.params == {"learning_rate": 0.01, **SFT}


def test_the_same_name_twice_stands_at_its_field(mei, browse):
    client = browse(mei)
    client.post(ADD, posted())
    form = client.post(ADD, posted()).context["form"]
    assert form.errors["config_name"] == ["There is a config of this name already."]


def test_the_form_refuses_what_the_job_form_refuses(mei, browse):
    form = browse(mei).post(ADD, posted(epochs="0", beta="1")).context["form"]
    assert set(form.errors) == {"epochs", "__all__"}


def test_only_a_superuser_keeps_a_config_for_the_team(mei, boss, browse):
    assert "team" in browse(mei).post(ADD, posted(team="on")).context["form"].errors["__all__"][0]
    browse(boss).post(ADD, posted(team="on"))
    assert TrainingConfig.objects.get(name="mine").owner is None


def test_a_person_edits_their_own(mei, browse):
    client = browse(mei)
    client.post(ADD, posted())
    saved = TrainingConfig.objects.get(name="mine")
    assert client.get(f"{LIST}{saved.pk}/change/").context["form"]["config_name"].value() == "mine"
    client.post(f"{LIST}{saved.pk}/change/", posted(config_name="renamed", epochs="3"))
    saved.refresh_from_db()
    assert (saved.name, saved.params["epochs"]) == ("renamed", 3)


def test_nobody_edits_or_deletes_one_that_ships(boss, browse):
    client = browse(boss)
    saved = builtin("sft", "Script defaults")
    page = client.get(f"{LIST}{saved.pk}/change/").content.decode()
    assert "cannot be changed" in page
    assert f"{ADD}?config={saved.pk}" in page
    assert client.post(f"{LIST}{saved.pk}/change/", posted()).status_code == 403
    assert client.post(f"{LIST}{saved.pk}/delete/", {"post": "yes"}).status_code == 403
    client.post(LIST, {"action": "delete_selected", "_selected_action": [saved.pk], "post": "yes"})
    assert builtin("sft", "Script defaults") == saved


def test_one_persons_config_is_not_anothers(mei, boss, browse):
    mine = TrainingConfig.objects.create(training_type="sft", name="boss only", owner=boss)
    client = browse(mei)
    assert "boss only" not in client.get(LIST).content.decode()
    assert client.get(f"{LIST}{mine.pk}/change/").status_code == 404
    assert client.post(f"{LIST}{mine.pk}/queue/").status_code == 404
    assert client.get("/admin/jobs/job/add/", {"config": mine.pk}).status_code == 404


def test_queue_makes_one_job_of_a_config(mei, browse):
    client = browse(mei)
    smoke = builtin("sft", "CPU smoke test")
    key = {"submission_key": "0d0fa8a3-06f6-4f1c-8a27-0a3b8a0b8c11"}
    first = client.post(f"{LIST}{smoke.pk}/queue/", key)
    client.post(f"{LIST}{smoke.pk}/queue/", key)
    job = Job.objects.get()
    assert first.url == f"/admin/jobs/job/{job.pk}/change/"
    assert (job.owner, job.params["max_steps"], job.params["from_weight"]) == (mei, 5, "none")


def test_queue_opens_the_form_when_a_path_is_missing(mei, browse):
    saved = builtin("grpo", "Script defaults")
    response = browse(mei).post(f"{LIST}{saved.pk}/queue/")
    assert response.url == f"/admin/jobs/job/add/?config={saved.pk}"
    texts = [str(message) for message in get_messages(response.wsgi_request)]
    assert texts[0] == "../../internlm2-1_8b-reward is not on this host"
    assert Job.objects.count() == 0


def test_queue_is_a_post_of_someone_who_may_add_jobs(viewer, mei, browse):
    saved = builtin("sft", "CPU smoke test")
    assert browse(viewer).post(f"{LIST}{saved.pk}/queue/").status_code == 403
    assert browse(mei).get(f"{LIST}{saved.pk}/queue/").status_code == 405


def test_a_config_says_that_it_does_not_keep_where_a_job_started(mei, job, browse):
    Job.objects.filter(pk=job.pk).update(start_from="folder", params=job.params | {"init_path": "../dataset"})
    response = browse(mei).get(ADD, {"clone": job.pk})
    texts = [str(message) for message in get_messages(response.wsgi_request)]
    assert texts == ["A config does not say what to start from; choose that when a job is submitted."]


def test_a_job_is_saved_as_a_config(mei, job, browse):
    form = browse(mei).get(ADD, {"clone": job.pk}).context["form"]
    assert form["from_weight"].value() == "none"
    assert form.config_class.type_name == "sft"


def test_a_superuser_takes_a_config_back_from_the_team(boss, browse):
    client = browse(boss)
    client.post(ADD, posted(team="on"))
    saved = TrainingConfig.objects.get(name="mine")
    client.post(f"{LIST}{saved.pk}/change/", posted())
    saved.refresh_from_db()
    assert saved.owner == boss
