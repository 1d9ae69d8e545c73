"""What the form refuses, and where it says so."""

from jobs.models import Job
from tests.jobs.admin.conftest import ADD, errors_of, posted


def test_an_unknown_type_is_a_bad_request(boss, browse):
    assert browse(boss).post(ADD, posted(training_type="rm -rf")).status_code == 400


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


def test_starting_from_a_job_needs_the_job(mei, browse):
    errors = errors_of(browse(mei).post(ADD, posted(start_from="job")))
    assert errors["depends_on"] == ["Name the job whose weights to start from."]


def test_a_folder_without_its_choice_is_not_dropped_in_silence(mei, browse):
    errors = errors_of(browse(mei).post(ADD, posted(start_folder="../dataset")))
    assert "start_folder" in errors


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


def test_a_number_in_the_address_that_is_none_is_not_found(boss, browse):
    client = browse(boss)
    for number in ("²", "x", "9" * 5000):
        assert client.get(ADD, {"clone": number}).status_code == 404
        assert client.get(ADD, {"config": number}).status_code == 404


def test_a_missing_path_says_that_nothing_was_submitted_yet(mei, browse):
    page = browse(mei).post(ADD, posted(data_path="../dataset/nowhere.jsonl")).content.decode()
    assert "Nothing was submitted yet" in page
