import copy

import pytest

from dataset.errors import DataError
from dataset.pretraining import TextRows


def test_a_text_stands_between_begin_and_end_and_all_of_it_is_learned(tokenizer, write_rows):
    rows = TextRows(write_rows({"text": "07+38=045"}), tokenizer, 64)
    assert tokenizer.decode(rows[0]["input_ids"]) == "<|im_start|>07+38=045<|im_end|>"
    assert rows[0]["labels"] == rows[0]["input_ids"]


def test_a_long_text_is_cut_before_the_end_token(tokenizer, write_rows):
    rows = TextRows(write_rows({"text": "0123456789"}), tokenizer, 6)
    assert tokenizer.decode(rows[0]["input_ids"]) == "<|im_start|>0123<|im_end|>"


def test_a_tokenizer_without_a_begin_token_gets_none(tokenizer, write_rows):
    bare = copy.deepcopy(tokenizer)
    bare.bos_token = None
    rows = TextRows(write_rows({"text": "0123456789"}), bare, 6)
    assert tokenizer.decode(rows[0]["input_ids"]) == "01234<|im_end|>"


def test_texts_that_are_empty_are_skipped_or_refused(tokenizer, write_rows):
    path = write_rows({"text": ""}, {"text": "07"})
    rows = TextRows(path, tokenizer, 6, strict=False)
    assert (len(rows), rows.skipped.first) == (1, [(1, "'text' must be text, not empty")])
    with pytest.raises(DataError, match="row 1: 'text' must be text"):
        TextRows(path, tokenizer, 6)
