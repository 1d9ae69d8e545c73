import json
import subprocess
import sys
from pathlib import Path

import pytest

import dataset
from dataset import scan
from dataset.errors import DataError, Skipped
from dataset.jsonl import JsonLines


def even(row):
    if row["n"] % 2:
        raise ValueError("is odd")


def written(tmp_path, content: bytes):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    return path


MIXED = b'{"n": 1}\n\n{"n": 2}\r\noops\n{"n": 3}\n{"n": 4}\n\n'


def test_strict_refuses_the_file_at_its_first_bad_row(tmp_path):
    with pytest.raises(DataError) as caught:
        JsonLines(written(tmp_path, MIXED), check=even)
    assert str(caught.value) == "rows.jsonl, row 1: is odd"


def test_otherwise_bad_rows_are_left_out_and_counted(tmp_path):
    rows = JsonLines(written(tmp_path, MIXED), check=even, strict=False)
    assert list(rows) == [{"n": 2}, {"n": 4}]
    assert rows.skipped == Skipped(
        path=tmp_path / "rows.jsonl",
        rows=6,
        count=4,
        first=[(1, "is odd"), (2, "is blank"), (4, "is not JSON (Expecting value at column 1)"), (5, "is odd")],
    )


def test_row_numbers_stay_those_of_the_file(tmp_path):
    rows = JsonLines(written(tmp_path, MIXED), check=even, strict=False)
    with pytest.raises(DataError, match="row 6: no more"):
        rows.parsed(-1, refuse)


def refuse(row):
    raise ValueError("no more")


def test_the_summary_names_the_first_three():
    skipped = Skipped(path=Path("a/b.jsonl"), rows=1_000)
    assert skipped.summary() == ""
    for row in (3, 40, 41):
        skipped.add(row, "is odd")
    assert skipped.summary() == (
        "warning: 3 of 1,000 rows of b.jsonl cannot be used and are skipped: "
        "row 3: is odd; row 40: is odd; row 41: is odd"
    )
    skipped.add(999, "is odd")
    assert skipped.summary().endswith("row 41: is odd; …")


def test_a_file_without_a_usable_row_shows_the_first_reasons(tmp_path):
    with pytest.raises(DataError) as caught:
        JsonLines(written(tmp_path, b'{"n": 1}\n{"n": 3}\n'), check=even, strict=False)
    assert str(caught.value) == "rows.jsonl: none of its 2 rows can be used: row 1: is odd; row 2: is odd"


def test_a_row_that_is_too_long_is_passed_over_piece_by_piece(tmp_path, monkeypatch):
    monkeypatch.setattr(scan, "MAX_ROW", 2**20)
    path = written(tmp_path, b'{"n": 2}\n{"n": "' + b"x" * 5 * 2**20 + b'"}\n{"n": 4}\n')
    rows = JsonLines(path, check=even, strict=False)
    assert list(rows) == [{"n": 2}, {"n": 4}]
    assert rows.skipped.first == [(2, "is longer than 1 MiB; each line holds one row")]


MEASURE = """
import random, resource, sys
from dataset.formats import read_text
from dataset.jsonl import JsonLines
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
before = peak()
rows = JsonLines(sys.argv[1], check=read_text)
chance = random.Random(0)
assert all(rows[n]["text"].startswith(f"{n} ") for n in (chance.randrange(len(rows)) for _ in range(1_000)))
print(len(rows), peak() - before)
"""


def test_a_file_of_50_mb_takes_a_few_mb_of_memory(tmp_path):
    path = tmp_path / "rows.jsonl"
    with path.open("w") as file:
        file.writelines(json.dumps({"text": f"{n} " + "x" * 480}) + "\n" for n in range(100_000))
    assert path.stat().st_size > 49_000_000
    measured = subprocess.run(
        [sys.executable, "-c", MEASURE, path],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(dataset.__file__).parents[1],
    )
    rows, grown = map(int, measured.stdout.split())
    assert rows == 100_000
    assert grown < 15, f"{grown} MB more"
