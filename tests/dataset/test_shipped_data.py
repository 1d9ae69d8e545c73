import filecmp
import json
import os
import re
from collections import Counter
from pathlib import Path

import pytest

import dataset
from dataset.build import EASY_COPIES, HELD_OUT, NUMBERS, STATED_SUMS, WORDINGS, build
from dataset.validation import check_file

DATASET = Path(dataset.__file__).parent
SHIPPED = (
    "sft-mini.jsonl",
    "rlaif-mini.jsonl",
    "eval-mini.jsonl",
    "dpo-mini.jsonl",
    "eval-pairs-mini.jsonl",
    "pretrain-mini.jsonl",
    "tokenizer/tokenizer.json",
    "tokenizer/tokenizer_config.json",
    "tokenizer/chat_template.jinja",
)


def rows_of(name):
    return [json.loads(line) for line in (DATASET / name).read_text(encoding="utf-8").splitlines()]


def pair_of(row) -> tuple[int, int]:
    """Return the two numbers that a row asks for, each written with two digits."""
    a, b = re.findall(r"(?<!\d)\d\d(?!\d)", row["conversations"][0]["content"])
    return int(a), int(b)


def test_a_rebuild_gives_the_bytes_that_ship(tmp_path):
    build(tmp_path)
    built = sorted(os.path.relpath(path, tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    assert built == sorted(SHIPPED)
    assert filecmp.cmpfiles(tmp_path, DATASET, SHIPPED, shallow=False) == (list(SHIPPED), [], [])


@pytest.mark.parametrize("name", ["sft-mini.jsonl", "rlaif-mini.jsonl"])
def test_held_out_pairs_are_trained_on_in_neither_order(name):
    held_out = {frozenset(pair_of(row)) for row in rows_of("eval-mini.jsonl")}
    trained = {pair_of(row) for row in rows_of(name)}
    assert len(held_out) == len(rows_of("eval-mini.jsonl")) == HELD_OUT
    assert not held_out & {frozenset(pair) for pair in trained}
    every = {(a, b) for a in range(NUMBERS) for b in range(NUMBERS)}
    assert trained == {pair for pair in every if frozenset(pair) not in held_out}


@pytest.mark.parametrize("name", ["rlaif-mini.jsonl", "eval-mini.jsonl"])
def test_answers_are_the_sums_with_three_digits(name):
    assert all(row["answer"] == f"{sum(pair_of(row)):03d}" for row in rows_of(name))


def test_the_assistant_gives_the_sum_in_the_sft_file():
    assert all(row["conversations"][1]["content"] == f"{sum(pair_of(row)):03d}" for row in rows_of("sft-mini.jsonl"))


def test_sft_repeats_pairs_without_a_carry_and_rlaif_repeats_none():
    for name, easy_copies in (("sft-mini.jsonl", EASY_COPIES), ("rlaif-mini.jsonl", 1)):
        counts = Counter(map(pair_of, rows_of(name)))
        assert all(count == (easy_copies if a % 10 + b % 10 < 10 else 1) for (a, b), count in counts.items())


@pytest.mark.parametrize("name", ["sft-mini.jsonl", "rlaif-mini.jsonl", "eval-mini.jsonl"])
def test_every_wording_is_used_about_equally_often(name):
    asked = [re.sub(r"\d\d", "{}", row["conversations"][0]["content"]) for row in rows_of(name)]
    expected = len(asked) / len(WORDINGS)
    assert all(0.8 < asked.count(re.sub(r"{.}", "{}", wording)) / expected < 1.2 for wording in WORDINGS)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("sft-mini.jsonl", "conversations"),
        ("rlaif-mini.jsonl", "answered"),
        ("eval-mini.jsonl", "answered"),
        ("dpo-mini.jsonl", "pairs"),
        ("eval-pairs-mini.jsonl", "pairs"),
        ("pretrain-mini.jsonl", "text"),
    ],
)
def test_shipped_files_are_valid(name, kind):
    report = check_file(DATASET / name, kind)
    assert report.errors == []
    assert report.rows >= {"eval-mini.jsonl": 1_000, "eval-pairs-mini.jsonl": 500}.get(name, 4_000)


def preference_of(row) -> tuple[tuple[int, int], str, str]:
    """Return the two numbers that a pair asks for, the chosen and the rejected answer."""
    assert row["chosen"][0] == row["rejected"][0]
    pair = pair_of({"conversations": row["chosen"]})
    return pair, row["chosen"][1]["content"], row["rejected"][1]["content"]


@pytest.mark.parametrize("name", ["dpo-mini.jsonl", "eval-pairs-mini.jsonl"])
def test_the_rejected_answer_misses_one_digit_by_one(name):
    for pair, chosen, rejected in map(preference_of, rows_of(name)):
        assert chosen == f"{sum(pair):03d}"
        (missed,) = [(int(a), int(b)) for a, b in zip(chosen, rejected, strict=True) if a != b]
        assert abs(missed[0] - missed[1]) in (1, 9)  # 9 and 0 are neighbours


def test_pairs_to_learn_from_and_texts_hold_no_held_out_pair():
    held_out = {frozenset(pair_of(row)) for row in rows_of("eval-mini.jsonl")}
    assert not held_out & {frozenset(preference_of(row)[0]) for row in rows_of("dpo-mini.jsonl")}
    assert held_out >= {frozenset(preference_of(row)[0]) for row in rows_of("eval-pairs-mini.jsonl")}
    stated = [re.findall(r"\d+", row["text"]) for row in rows_of("pretrain-mini.jsonl")]
    stated = [sorted(map(int, numbers)) for numbers in stated if numbers]
    assert len(stated) == STATED_SUMS
    assert all(a + b == total for a, b, total in stated)
    assert not held_out & {frozenset((a, b)) for a, b, _ in stated}
