import subprocess
import sys

import pytest

from dataset.errors import DataError
from dataset.validation import check_file

ASK = {"role": "user", "content": "07+38="}
SAY = {"role": "assistant", "content": "045"}
GOOD = {"conversations": [ASK, SAY]}
BAD = {"conversations": [SAY]}


def test_a_report_lists_bad_rows_and_shows_the_first_good_ones(write_rows):
    report = check_file(write_rows(BAD, GOOD, GOOD, BAD, GOOD, GOOD), "conversations")
    assert report.rows == 6
    assert report.errors == [
        (1, "must begin with a system or a user turn"),
        (4, "must begin with a system or a user turn"),
    ]
    assert report.samples == [GOOD] * 3


def test_the_list_of_errors_has_an_end(write_rows):
    assert [row for row, _ in check_file(write_rows(*[BAD] * 30), "prompts").errors] == list(range(1, 21))


def test_strict_stops_at_the_first_bad_row(write_rows):
    with pytest.raises(DataError, match="row 2: must begin with"):
        check_file(write_rows(GOOD, BAD, BAD), "conversations", strict=True)


def test_each_kind_asks_for_what_it_needs(write_rows):
    path = write_rows({"conversations": [ASK]}, {"conversations": [ASK], "answer": "045"})
    assert check_file(path, "prompts").errors == []
    assert check_file(path, "answered").errors == [(1, "has no 'answer'")]
    assert check_file(path, "conversations").errors == [(1, "has no assistant turn"), (2, "has no assistant turn")]


def test_checking_a_file_imports_no_torch():
    code = "import sys, dataset.validation; print({'torch', 'transformers', 'django'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
