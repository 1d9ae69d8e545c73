"""The check of a data file from the form: the real command, on the file that the form names."""

import pytest

from trainers.paths import state_folder

CHECK = "/admin/jobs/job/data/"


def page(client, **typed):
    response = client.post(CHECK, {"training_type": "sft", "check": "data_path", **typed})
    assert response.status_code == 200
    return response.content.decode()


def write(name, text):
    path = state_folder() / "uploads" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def test_a_file_is_shown_as_the_model_sees_it(mei, browse):
    text = page(browse(mei), data_path="../dataset/sft-mini.jsonl", max_seq_len="20")
    assert "16845 rows of conversations, 16845 usable." in text
    assert "Tokens per row: at least 19, median 20, 95 % up to 23, at most 23." in text
    assert "longer than 20 tokens" in text
    assert "&lt;|im_start|&gt;assistant\n074&lt;|im_end|&gt;" in text
    assert "<code>074&lt;|im_end|&gt;</code>" in text


def test_each_type_reads_its_own_format_and_the_evaluation_data_another(mei, browse):
    client = browse(mei)
    assert "4000 rows of pairs" in page(client, training_type="dpo", data_path="../dataset/dpo-mini.jsonl")
    assert "8019 rows of prompts" in page(client, training_type="grpo")
    evaluation = {"training_type": "grpo", "check": "eval_data_path"}
    assert "1000 rows of answered" in page(client, **evaluation, eval_data_path="../dataset/eval-mini.jsonl")
    assert "Name a file first." in page(client, **evaluation)


def test_bad_rows_are_named_and_escaped(mei, browse):
    bad = '{"conversations": [{"role": "<script>", "content": "x"}]}\n'
    good = '{"conversations": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]}\n'
    text = page(browse(mei), data_path=write("bad.jsonl", good + bad))
    assert "1 row is skipped" in text
    assert "row 2: turn 1 has role &#x27;&lt;script&gt;&#x27;" in text
    assert "<script>" not in text
    assert "This file cannot be used." in page(browse(mei), data_path=write("worse.jsonl", bad))


def test_a_path_outside_the_allowed_folders_is_not_opened(mei, browse):
    for name in ("data_path", "tokenizer_path"):
        assert "outside the allowed folders" in page(browse(mei), **{name: "/etc/passwd"})


@pytest.mark.parametrize("who", ["viewer", "stranger"])
def test_only_who_may_queue_a_job_may_check_its_data(who, browse, request):
    response = browse(request.getfixturevalue(who)).post(CHECK, {"training_type": "sft"})
    assert response.status_code == 403


def test_a_tokenizer_that_cannot_be_loaded_is_said(mei, browse):
    folder = state_folder() / "uploads" / "tokenizer"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer_config.json").write_text("{}")
    assert "no tokenizer can be loaded" in page(browse(mei), tokenizer_path=str(folder))
