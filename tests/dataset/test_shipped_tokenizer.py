import pytest

from dataset.formats import Turn


@pytest.mark.parametrize(
    "text",
    [
        "07+38=",
        "What is 07+38?",
        "请计算07加38。",
        "你好，世界！",
        "🎉👩‍👩‍👧",
        "naïve Ω\t\n  two  spaces ",
        "1234567890",
        "龘\x00\x7f",
        "<think>\n7+8\n</think>\n015",
    ],
)
def test_every_text_round_trips(tokenizer, text):
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_digits_are_split_one_by_one(tokenizer):
    for text in ("100", "2024年", "a1b22", "99+99"):
        tokens = [tokenizer.decode([token]) for token in tokenizer(text)["input_ids"]]
        assert [token for token in tokens if any(map(str.isdigit, token))] == [char for char in text if char.isdigit()]


def test_special_tokens_have_the_numbers_of_minimind(tokenizer):
    names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    assert tokenizer.convert_tokens_to_ids(names) == [0, 1, 2]
    assert (tokenizer.pad_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id) == (0, 1, 2)


def test_think_tokens_are_single_and_stay_in_the_decoded_text(tokenizer):
    ids = tokenizer("<think></think>045<|im_end|>")["input_ids"]
    assert len(ids) == 6
    assert tokenizer.decode(ids, skip_special_tokens=True) == "<think></think>045"


def test_the_vocabulary_is_small(tokenizer):
    assert len(tokenizer) == 384
    assert max(tokenizer.get_vocab().values()) == 383


def test_the_chat_template_writes_turns_and_the_generation_prompt(tokenizer):
    turns: list[Turn] = [{"role": "system", "content": "Add."}, {"role": "user", "content": " 07+38=\n"}]
    assert tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True) == (
        "<|im_start|>system\nAdd.<|im_end|>\n<|im_start|>user\n 07+38=\n<|im_end|>\n<|im_start|>assistant\n"
    )


def test_a_question_takes_few_tokens(tokenizer):
    assert len(tokenizer("请计算07加38。")["input_ids"]) <= 8
    assert len(tokenizer("<|im_start|>assistant\n")["input_ids"]) == 3
