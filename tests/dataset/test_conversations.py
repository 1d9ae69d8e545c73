import pytest
from torch.utils.data import DataLoader

from dataset.conversations import ConversationRows, collate, tokenize_conversation, unlabelled_rows
from dataset.errors import DataError

ASK = {"role": "user", "content": "07+38="}
SAY = {"role": "assistant", "content": "045"}
EOS = 2

# Drops the reasoning of every assistant turn but the last, as Qwen3's template does.
FORGETFUL = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{{ m.content if loop.last else m.content.split('</think>')[-1] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def learned(tokenizer, example) -> list[str]:
    """Return the runs of neighbouring labels, as text."""
    runs, previous = [], -100
    for token, label in zip(example["input_ids"], example["labels"], strict=True):
        assert label in (-100, token)
        if label != -100:
            runs += [[]] if previous == -100 else []
            runs[-1].append(label)
        previous = label
    return [tokenizer.decode(run) for run in runs]


def test_labels_are_the_answer_and_the_end_of_turn_and_nothing_else(tokenizer):
    example = tokenize_conversation(tokenizer, [ASK, SAY], 64)
    assert [label for label in example["labels"] if label != -100] == [*tokenizer("045")["input_ids"], EOS]
    assert tokenizer.decode(example["input_ids"]) == (
        "<|im_start|>user\n07+38=<|im_end|>\n<|im_start|>assistant\n045<|im_end|>\n"
    )


def test_every_assistant_turn_is_learned_and_system_and_tool_turns_are_context(tokenizer):
    turns = [
        {"role": "system", "content": "加"},
        ASK,
        SAY,
        {"role": "tool", "content": "ok"},
        ASK,
        {"role": "assistant", "content": "<think>\n7+8=15\n</think>\n四十五 🎉"},
    ]
    assert learned(tokenizer, tokenize_conversation(tokenizer, turns, 256)) == [
        "045<|im_end|>",
        "<think>\n7+8=15\n</think>\n四十五 🎉<|im_end|>",
    ]


def test_a_turn_that_quotes_the_end_token_is_learned_to_its_real_end(tokenizer):
    turns = [ASK, {"role": "assistant", "content": "say <|im_end|> now"}, ASK, SAY]
    assert learned(tokenizer, tokenize_conversation(tokenizer, turns, 256)) == [
        "say <|im_end|> now<|im_end|>",
        "045<|im_end|>",
    ]


def test_a_question_that_looks_like_an_answer_is_not_learned(tokenizer):
    turns = [{"role": "user", "content": "<|im_start|>assistant\n045<|im_end|>"}, SAY]
    assert learned(tokenizer, tokenize_conversation(tokenizer, turns, 256)) == ["045<|im_end|>"]


def test_a_turn_that_the_template_rewrites_is_not_learned(tokenizer, monkeypatch):
    monkeypatch.setattr(tokenizer, "chat_template", FORGETFUL)
    turns = [ASK, {"role": "assistant", "content": "<think>7+8</think>045"}, ASK, SAY]
    assert learned(tokenizer, tokenize_conversation(tokenizer, turns, 256)) == ["045<|im_end|>"]


def test_a_template_of_another_family_needs_no_known_ids(tokenizer, monkeypatch):
    monkeypatch.setattr(
        tokenizer,
        "chat_template",
        (
            "{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]"
            "{% else %} {{ m.content }}{{ eos_token }}{% endif %}{% endfor %}"
        ),
    )
    example = tokenize_conversation(tokenizer, [ASK, SAY, ASK, SAY], 256)
    assert learned(tokenizer, example) == [" 045<|im_end|>", " 045<|im_end|>"]


def test_a_template_that_refuses_a_row_is_a_data_error(tokenizer, monkeypatch, write_rows):
    monkeypatch.setattr(tokenizer, "chat_template", "{{ raise_exception('no system turns') }}")
    rows = ConversationRows(write_rows({"conversations": [ASK, SAY]}), tokenizer, 64)
    with pytest.raises(DataError) as caught:
        rows[0]
    assert str(caught.value) == "rows.jsonl, row 1: the tokenizer's chat template refuses it: no system turns"


def test_a_bad_row_is_named_by_its_number(tokenizer, write_rows):
    path = write_rows({"conversations": [ASK, SAY]}, {"conversations": [ASK]})
    with pytest.raises(DataError) as caught:
        ConversationRows(path, tokenizer, 64)
    assert str(caught.value) == "rows.jsonl, row 2: has no assistant turn"


def test_a_long_row_is_cut_at_the_right_and_may_keep_no_label(tokenizer):
    whole = tokenize_conversation(tokenizer, [ASK, SAY], 64)
    cut = tokenize_conversation(tokenizer, [ASK, SAY], 6)
    assert cut == {"input_ids": whole["input_ids"][:6], "labels": [-100] * 6}
    assert unlabelled_rows(collate([whole, cut, cut], pad_id=0)["labels"]) == 2


def test_a_row_without_a_label_is_refused_when_strict(tokenizer, write_rows):
    path = write_rows({"conversations": [ASK, SAY]})
    assert set(ConversationRows(path, tokenizer, 6, strict=False)[0]["labels"]) == {-100}
    with pytest.raises(DataError) as caught:
        ConversationRows(path, tokenizer, 6)[0]
    assert str(caught.value) == "rows.jsonl, row 1: keeps no token to learn within --max_seq_len 6"


def test_bad_rows_are_skipped_and_counted_when_not_strict(tokenizer, write_rows):
    path = write_rows({"conversations": [ASK]}, {"conversations": [ASK, SAY]})
    rows = ConversationRows(path, tokenizer, 64, strict=False)
    assert (len(rows), rows.skipped.first) == (1, [(1, "has no assistant turn")])
    assert learned(tokenizer, rows[0]) == ["045<|im_end|>"]


def test_a_batch_is_padded_on_the_right_and_masked_by_length():
    batch = collate(
        [{"input_ids": [7, 2], "labels": [-100, 2]}, {"input_ids": [5, 6, 7, 2], "labels": [-100, -100, 7, 2]}],
        pad_id=2,
    )
    assert batch["input_ids"].tolist() == [[7, 2, 2, 2], [5, 6, 7, 2]]
    assert batch["attention_mask"].tolist() == [[1, 1, 0, 0], [1, 1, 1, 1]]
    assert batch["labels"].tolist() == [[-100, 2, -100, -100], [-100, -100, 7, 2]]


def test_reader_processes_give_the_same_batches(tokenizer, write_rows):
    path = write_rows(*({"conversations": [ASK, {"role": "assistant", "content": str(n)}]} for n in range(4)))
    rows = ConversationRows(path, tokenizer, 64)
    here, there = (
        DataLoader(rows, batch_size=2, num_workers=n, collate_fn=lambda batch: collate(batch, 0)) for n in (0, 1)
    )
    assert [batch["labels"].tolist() for batch in here] == [batch["labels"].tolist() for batch in there]
