import pickle

import pytest

from dataset.errors import DataError
from dataset.jsonl import JsonLines


def written(tmp_path, content: bytes):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    return path


def test_rows_are_read_in_any_order(tmp_path):
    rows = JsonLines(written(tmp_path, '{"n": 1}\n{"n": "二"}\r\n{"n": 3}'.encode()))
    assert (len(rows), rows[2], rows[0], rows[1], rows[-1]) == (3, {"n": 3}, {"n": 1}, {"n": "二"}, {"n": 3})


def test_iteration_ends_after_the_last_row(tmp_path):
    assert list(JsonLines(written(tmp_path, b'{"n": 1}\n{"n": 2}\n'))) == [{"n": 1}, {"n": 2}]


def test_blank_lines_at_the_end_and_a_byte_order_mark_do_not_count(tmp_path):
    assert list(JsonLines(written(tmp_path, b'\xef\xbb\xbf{"n": 1}\n\n  \n'))) == [{"n": 1}]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"n": 1', "is not JSON (Expecting ',' delimiter at column 8)"),
        (b"[1, 2]", "is not a JSON object; each line holds one row"),
        (b'{"n": "\xff\xfe"}', "is not UTF-8 text"),
        (b'{"n": "' + "和".encode("gbk") + b'"}', "is not UTF-8 text; it may be GBK: iconv -f GB18030 -t UTF-8"),
        ("\ufeff{}".encode("utf-16-le"), "is not UTF-8 text; it looks like UTF-16"),
        (b'{"n": 1\0\0\0', "holds NUL bytes: a file in UTF-16, or one whose writing was cut off"),
        (b'{"n": 1, "m": 2, "n": 3}', "has the key 'n' twice"),
        (b'{"n": NaN}', "is not JSON (NaN is no value)"),
        (b"[" * 100_000, "is not JSON (nested too deeply)"),
    ],
)
def test_a_bad_row_is_one_line_with_its_number(tmp_path, line, reason):
    rows = JsonLines(written(tmp_path, b'{"n": 1}\n' + line + b'\n{"n": 3}\n'))
    with pytest.raises(DataError) as caught:
        rows[1]
    assert str(caught.value) == f"rows.jsonl, row 2: {reason}"
    assert rows[2] == {"n": 3}


@pytest.mark.parametrize("content", [b"", b"\n\n", b"  \n"])
def test_a_file_without_rows_is_refused(tmp_path, content):
    path = written(tmp_path, content)
    with pytest.raises(DataError, match="has no rows"):
        JsonLines(path)


def test_a_missing_file_is_named_with_its_folder(tmp_path):
    with pytest.raises(DataError) as caught:
        JsonLines(tmp_path / "gone.jsonl")
    assert str(caught.value) == f"gone.jsonl: cannot be read: No such file or directory ({tmp_path}/gone.jsonl)"


def test_a_folder_is_refused_in_one_line(tmp_path):
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        JsonLines(tmp_path)


def test_only_offsets_are_held_in_memory(tmp_path):
    rows = JsonLines(written(tmp_path, b'{"text": "' + b"x" * 1_000_000 + b'"}\n{"n": 2}\n'))
    assert len(pickle.dumps(rows)) < 1_000
    assert pickle.loads(pickle.dumps(rows))[1] == {"n": 2}


def test_digest_is_that_of_the_bytes(tmp_path):
    assert JsonLines(written(tmp_path, b"{}\n")).sha256() == (
        "ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356"
    )


def test_a_data_error_survives_the_way_out_of_a_reader_process():
    error = pickle.loads(pickle.dumps(DataError("a/b.jsonl", 12, "is not JSON")))
    assert (str(error), error.row) == ("b.jsonl, row 12: is not JSON", 12)
