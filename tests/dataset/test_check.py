import json
import subprocess
import sys
from pathlib import Path

import pytest

import dataset
from dataset.check import histogram_lines, main

ASK = {"role": "user", "content": "07+38="}
GOOD = {"conversations": [ASK, {"role": "assistant", "content": "045"}]}
BAD = {"conversations": [ASK]}


def test_the_report_names_rows_lengths_and_the_first_samples(write_rows, capsys):
    assert main([str(write_rows(GOOD, BAD)), "--kind", "conversations", "--max_seq_len", "18"]) == 0
    printed = capsys.readouterr()
    assert printed.err == "row 2: has no assistant turn\n"
    lines = printed.out.splitlines()
    assert lines[0].endswith("rows.jsonl: 2 rows of conversations, 1 usable")
    assert lines[2] == "tokens per row (all usable rows): min 19, median 19, 95% 19, max 19"
    assert "longer than 18 tokens: 1" in lines
    assert lines[-1] == "learned: '045<|im_end|>'"


def test_strict_wants_every_row(write_rows):
    path = str(write_rows(GOOD, BAD))
    assert main([path, "--kind", "conversations", "--strict"]) == 2


@pytest.mark.parametrize(("rows", "code"), [([GOOD, BAD], 0), ([BAD], 2)])
def test_json_is_one_object_and_the_exit_says_whether_a_row_can_be_used(write_rows, capsys, rows, code):
    assert main([str(write_rows(*rows)), "--kind", "conversations", "--json"]) == code
    described = json.loads(capsys.readouterr().out)
    assert (described["rows"], described["usable"]) == (len(rows), len(rows) - 1)


def test_a_missing_file_is_one_line_and_an_object_of_the_same_form(tmp_path, capsys):
    assert main([str(tmp_path / "gone.jsonl"), "--kind", "text", "--json"]) == 2
    printed = capsys.readouterr()
    reason = f"gone.jsonl: cannot be read: No such file or directory ({tmp_path}/gone.jsonl)"
    assert printed.err == f"error: {reason}\n"
    assert json.loads(printed.out)["errors"] == [{"row": None, "reason": reason}]


def test_a_folder_without_a_tokenizer_is_one_line(write_rows, tmp_path, capsys):
    assert main([str(write_rows(GOOD)), "--kind", "conversations", "--tokenizer_path", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"error: {tmp_path.name}: no tokenizer can be loaded from {tmp_path}: ")


def test_the_fullest_bucket_has_the_longest_bar():
    buckets = [{"from": 8, "to": 9, "count": 1}, {"from": 10, "to": 11, "count": 80}]
    assert histogram_lines(buckets) == ["   8 -  9        1  #", "  10 - 11       80  " + "#" * 40]


def test_the_command_takes_a_path_relative_to_trainers_and_imports_no_torch():
    code = (
        "import sys, dataset.check; "
        "code = dataset.check.main(['../dataset/eval-mini.jsonl', '--kind', 'answered']); "
        "assert 'torch' not in sys.modules; sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(dataset.__file__).parents[1]
    )
    assert done.stderr == ""
    assert done.stdout.startswith("../dataset/eval-mini.jsonl: 1,000 rows of answered, 1,000 usable\n")
