from dataset import describe
from dataset.describe import describe_file, evenly_spaced, histogram, token_statistics

ASK = {"role": "user", "content": "07+38="}
SAY = {"role": "assistant", "content": "045"}
MISS = {"role": "assistant", "content": "046"}
ASKED = "<|im_start|>user\n07+38=<|im_end|>\n<|im_start|>assistant\n"


def test_a_conversation_is_shown_as_the_model_sees_it(tokenizer, write_rows):
    found = describe_file(write_rows({}, {"conversations": [ASK, SAY, ASK, SAY]}), "conversations", tokenizer)
    assert found.as_json()["samples"] == [
        {
            "text": f"{ASKED}045<|im_end|>\n" * 2,
            "learned": "045<|im_end|> … 045<|im_end|>",
            "row": 2,
            "part": "conversation",
        }
    ]


def test_a_sample_is_cut_where_training_cuts_it(tokenizer, write_rows):
    path = write_rows({"conversations": [ASK, SAY]})
    length = len(tokenizer(ASKED)["input_ids"]) + 2
    (sample,) = describe_file(path, "conversations", tokenizer, length).samples
    assert (sample["text"], sample["learned"]) == (f"{ASKED}04", "04")


def test_either_side_of_a_pair_is_shown_and_the_longer_counts(tokenizer, write_rows):
    longer = {"role": "assistant", "content": "0466"}
    found = describe_file(write_rows({"chosen": [ASK, SAY], "rejected": [ASK, longer]}), "pairs", tokenizer)
    assert [(sample["part"], sample["learned"]) for sample in found.samples] == [
        ("chosen", "045<|im_end|>"),
        ("rejected", "0466<|im_end|>"),
    ]
    assert found.lengths == [len(tokenizer(f"{ASKED}0466<|im_end|>\n")["input_ids"])]


def test_of_a_prompt_nothing_is_learned(tokenizer, write_rows):
    found = describe_file(write_rows({"conversations": [ASK, SAY], "answer": "045"}), "answered", tokenizer)
    assert found.samples == [{"text": ASKED, "learned": "", "row": 1, "part": "prompt"}]


def test_rows_that_cannot_be_used_are_counted_with_their_reasons(tokenizer, write_rows):
    described = describe_file(
        write_rows({"text": "07"}, {"text": ""}, {"text": "0738"}), "text", tokenizer, 5
    ).as_json()
    assert (described["rows"], described["usable"], described["skipped"]) == (3, 2, 1)
    assert described["errors"] == [{"row": 2, "reason": "'text' must be text, not empty"}]
    assert described["tokens"] == {
        "min": 4,
        "p50": 4,
        "p95": 6,
        "max": 6,
        "limit": 5,
        "longer_than_limit": 1,
        "histogram": [
            {"from": 4, "to": 4, "count": 1},
            {"from": 5, "to": 5, "count": 0},
            {"from": 6, "to": 6, "count": 1},
        ],
    }


def test_a_file_without_a_usable_row_is_described_all_the_same(tokenizer, write_rows):
    described = describe_file(write_rows({"a": 1}), "text", tokenizer).as_json()
    assert (described["usable"], described["tokens"], described["samples"]) == (0, None, [])
    assert described["errors"] == [{"row": 1, "reason": "has no key 'text' (found 'a')"}]


def test_rows_that_the_chat_template_refuses_cannot_be_used(tokenizer, write_rows, monkeypatch):
    monkeypatch.setattr(tokenizer, "chat_template", "{{ raise_exception('no') }}")
    found = describe_file(write_rows({"conversations": [ASK, SAY]}), "conversations", tokenizer)
    assert (found.usable, found.skipped.first) == (0, [(1, "the tokenizer's chat template refuses it: no")])


def test_of_a_large_file_evenly_spaced_rows_are_tokenized(monkeypatch):
    monkeypatch.setattr(describe, "SAMPLED", 4)
    assert evenly_spaced(3) == [0, 1, 2]
    assert evenly_spaced(100) == [0, 1, 2, 25, 50, 75]


def test_statistics_of_twenty_lengths():
    statistics = token_statistics(list(range(1, 21)), 18)
    assert (statistics["p50"], statistics["p95"], statistics["longer_than_limit"]) == (10, 19, 2)
    assert histogram(list(range(1, 21)))[0] == {"from": 1, "to": 2, "count": 2}
    assert sum(bucket["count"] for bucket in statistics["histogram"]) == 20
