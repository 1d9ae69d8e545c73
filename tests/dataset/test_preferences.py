import pytest

from dataset.conversations import collate
from dataset.errors import DataError
from dataset.preferences import PreferenceRows
from tests.dataset.test_conversations import FORGETFUL, learned

ASK = {"role": "user", "content": "07+38="}
RIGHT = {"role": "assistant", "content": "045"}
WRONG = {"role": "assistant", "content": "046"}


def test_only_the_last_turn_of_either_side_is_learned(tokenizer, write_rows):
    pair = PreferenceRows(
        write_rows({"chosen": [ASK, WRONG, ASK, RIGHT], "rejected": [ASK, WRONG, ASK, WRONG]}), tokenizer, 64
    )[0]
    assert learned(tokenizer, pair["chosen"]) == ["045<|im_end|>"]
    assert learned(tokenizer, pair["rejected"]) == ["046<|im_end|>"]


def test_both_sides_have_the_same_prompt_tokens_and_go_into_one_batch(tokenizer, write_rows):
    pair = PreferenceRows(write_rows({"prompt": "07+38=", "chosen": "045", "rejected": "46"}), tokenizer, 64)[0]
    batch = collate([pair["chosen"], pair["rejected"]], tokenizer.pad_token_id)
    prompts = batch["labels"].eq(-100) & batch["attention_mask"].bool()
    completion = pair["chosen"]["labels"].index(tokenizer("0")["input_ids"][0])
    assert prompts[:, :completion].all()
    assert batch["input_ids"][0, :completion].tolist() == batch["input_ids"][1, :completion].tolist()


def test_a_cut_that_leaves_no_label_is_refused_when_strict_and_else_left_to_the_reader(tokenizer, write_rows):
    path = write_rows({"chosen": [ASK, RIGHT], "rejected": [ASK, WRONG]})
    assert set(PreferenceRows(path, tokenizer, 6, strict=False)[0]["chosen"]["labels"]) == {-100}
    with pytest.raises(DataError) as caught:
        PreferenceRows(path, tokenizer, 6)[0]
    assert str(caught.value) == "rows.jsonl, row 1: 'chosen' keeps no token to learn within --max_seq_len 6"


def test_an_earlier_turn_is_not_learned_in_place_of_a_last_one_that_the_template_drops(
    tokenizer, write_rows, monkeypatch
):
    monkeypatch.setattr(tokenizer, "chat_template", FORGETFUL.replace("m.content if loop.last else ", ""))
    thinking = {"role": "assistant", "content": "<think>7+8</think>"}
    path = write_rows({"chosen": [ASK, RIGHT, ASK, thinking], "rejected": [ASK, RIGHT, ASK, RIGHT]})
    pair = PreferenceRows(path, tokenizer, 64, strict=False)[0]
    assert (learned(tokenizer, pair["chosen"]), learned(tokenizer, pair["rejected"])) == ([], ["045<|im_end|>"])


def test_pairs_that_part_before_the_last_turn_are_named_by_their_row(tokenizer, write_rows):
    good, bad = (
        {"chosen": [ASK, RIGHT], "rejected": [ASK, WRONG]},
        {"chosen": [ASK, RIGHT], "rejected": [ASK, WRONG, ASK, WRONG]},
    )
    with pytest.raises(DataError, match="row 2: 'chosen' and 'rejected' must have all turns but the last in common"):
        PreferenceRows(write_rows(good, bad), tokenizer, 64)
