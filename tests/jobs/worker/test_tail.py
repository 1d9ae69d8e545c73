"""Rows and bytes that appear while another process writes."""

import json
import os

from jobs.worker.tail import LogTail, RowTail, parse_row


def write(path, *steps, mode="a"):
    with path.open(mode) as file:
        file.writelines(json.dumps({"step": step}) + "\n" for step in steps)


def steps(tail):
    return [row["step"] for row in tail.read()[0]]


def test_only_complete_new_rows_are_read(tmp_path):
    path = tmp_path / "metrics.jsonl"
    tail = RowTail(path, only_new=True)
    assert steps(tail) == []
    write(path, 1, 2)
    with path.open("a") as file:
        file.write('{"step": 3')
    assert (steps(tail), steps(tail)) == ([1, 2], [])
    with path.open("a") as file:
        file.write("}\n")
    assert steps(tail) == [3]


def test_rows_of_an_earlier_attempt_are_read_again_once_the_file_is_replaced(tmp_path):
    path = tmp_path / "metrics.jsonl"
    write(path, 1, 2, 3)
    tail = RowTail(path, only_new=True)
    assert steps(tail) == []
    write(tmp_path / "new", 1, 2)
    os.replace(tmp_path / "new", path)
    write(path, 3)
    assert steps(tail) == [1, 2, 3]


def test_everything_is_read_when_a_folder_is_adopted(tmp_path):
    write(tmp_path / "metrics.jsonl", 1, 2)
    assert steps(RowTail(tmp_path / "metrics.jsonl", only_new=False)) == [1, 2]


def test_rows_that_no_database_could_keep_are_left_out():
    assert parse_row(b'{"step": 1, "values": {"loss": NaN}}') is None
    assert parse_row(b'{"values": {}}') is None
    assert parse_row(b"[1]") is None
    assert parse_row(b"{") is None


def test_characters_that_postgresql_refuses_are_replaced():
    row = parse_row(rb'{"step": 1, "prompt": "a\u0000b\ud800c"}')
    assert row == {"step": 1, "prompt": "a\ufffdb?c"}


def test_a_log_is_read_on_from_where_it_was_left(tmp_path):
    path = tmp_path / "log.txt"
    tail = LogTail(path, 3)
    assert tail.read(10) == b""
    path.write_bytes(b"abcdefgh")
    assert (tail.read(2), tail.read(10), tail.position) == (b"de", b"fgh", 8)
