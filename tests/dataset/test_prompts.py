import pytest

from dataset.errors import DataError
from dataset.prompts import Prompt, PromptRows, prompt_ids

ASK = {"role": "user", "content": "07+38="}


def test_prompts_are_read_with_their_answers(write_rows):
    rows = PromptRows(
        write_rows(
            {"conversations": [ASK, {"role": "assistant", "content": ""}], "answer": "045"}, {"conversations": [ASK]}
        )
    )
    assert [rows[n] for n in range(len(rows))] == [Prompt([ASK], "045"), Prompt([ASK], None)]


def test_a_bad_prompt_is_named_by_its_number(write_rows):
    path = write_rows({"conversations": [ASK]}, {"conversations": [ASK], "answer": []})
    with pytest.raises(DataError) as caught:
        PromptRows(path)
    assert str(caught.value) == "rows.jsonl, row 2: 'answer' must be text or a number"


LONG = {"role": "user", "content": "What is 07+38+07+38+07+38?"}


def test_a_prompt_over_the_limit_is_skipped_or_refused_with_its_length(tokenizer, write_rows):
    path = write_rows({"conversations": [LONG], "answer": "135"}, {"conversations": [ASK]})
    rows = PromptRows(path, tokenizer, 20, strict=False)
    assert [rows[n].messages for n in range(len(rows))] == [[ASK]]
    length = len(prompt_ids(tokenizer, [LONG], 99))
    reason = f"its prompt has {length} tokens, more than --max_seq_len 20"
    assert rows.skipped.first == [(1, reason)]
    with pytest.raises(DataError, match=f"row 1: {reason}"):
        PromptRows(path, tokenizer, 20)
    assert len(PromptRows(path, tokenizer, length)) == 2


def test_answers_count_only_on_rows_that_are_used(tokenizer, write_rows):
    path = write_rows({"conversations": [LONG], "answer": "135"}, {"conversations": [ASK]})
    assert PromptRows(path).has_answers
    assert not PromptRows(path, tokenizer, 20, strict=False).has_answers


def test_tools_stand_in_the_prompt(tokenizer, write_rows):
    system = {"role": "system", "content": "Add.", "tools": '[{"name": "add"}]'}
    prompt = PromptRows(write_rows({"conversations": [system, ASK]}))[0]
    assert '{"name": "add"}' in tokenizer.decode(prompt_ids(tokenizer, prompt.messages, 512))


def test_a_prompt_ends_where_the_assistant_begins(tokenizer):
    ids = prompt_ids(tokenizer, [ASK], 64)
    assert tokenizer.decode(ids) == "<|im_start|>user\n07+38=<|im_end|>\n<|im_start|>assistant\n"


def test_thinking_opens_a_think_token(tokenizer):
    ids = prompt_ids(tokenizer, [ASK], 64, thinking=True)
    assert tokenizer.decode(ids[-3:]) == "\n<think>\n"
    assert ids[-2] == tokenizer.convert_tokens_to_ids("<think>")


def test_a_long_prompt_is_cut_from_the_left_so_that_the_generation_prompt_stays(tokenizer):
    ids = prompt_ids(tokenizer, [{"role": "user", "content": "加 " * 500}], 8)
    assert len(ids) == 8
    assert tokenizer.decode(ids).endswith("<|im_end|>\n<|im_start|>assistant\n")
