import pytest

from dataset.formats import read_conversation
from dataset.rendering import assistant_spans, render, tokenize_conversation
from tests.dataset.test_conversations import learned

ASK = {"role": "user", "content": "07+38="}
SAY = {"role": "assistant", "content": "045"}
THINK = {"role": "assistant", "content": "045", "reasoning_content": "7+8=15\n"}
TAGGED = {"role": "assistant", "content": "<think>7+8=15</think>045"}

# As Qwen3's: thinking is moved into one form, and kept in the last turn alone, which has a block even without any.
QWEN = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% set thought = m.reasoning_content or m.content.split('</think>')[0].split('<think>')[-1] "
    "if m.reasoning_content or '</think>' in m.content else '' %}"
    "{% if m.role == 'assistant' and loop.last %}<think>\n{{ thought.strip() }}\n</think>\n\n{% endif %}"
    "{{ m.content.split('</think>')[-1].strip() }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SHUT = QWEN.replace("assistant\n{% endif %}", "assistant\n<think>\n\n</think>\n\n{% endif %}")


def spoken(tokenizer, turns) -> list[str]:
    text = render(tokenizer, turns)
    return [text[start:end] for start, end in assistant_spans(tokenizer, turns, text)]


def test_the_shipped_template_writes_thinking_before_what_is_said(tokenizer):
    assert render(tokenizer, [ASK, THINK]) == (
        "<|im_start|>user\n07+38=<|im_end|>\n<|im_start|>assistant\n<think>\n7+8=15\n</think>\n\n045<|im_end|>\n"
    )
    assert learned(tokenizer, tokenize_conversation(tokenizer, [ASK, THINK], 64)) == [
        "<think>\n7+8=15\n</think>\n\n045<|im_end|>"
    ]


def test_the_shipped_template_writes_tools_calls_and_their_results(tokenizer):
    row = {
        "conversations": [
            {"role": "system", "content": "Add.", "tools": '[{"name": "add"}]'},
            ASK,
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"name": "add", "arguments": {"a": 7}},
                    {"function": {"name": "add", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "content": "45"},
            {"role": "tool", "content": "46"},
            SAY,
        ]
    }
    calls = (
        '<tool_call>\n{"name": "add", "arguments": {"a": 7}}\n</tool_call>\n'
        '<tool_call>\n{"name": "add", "arguments": {}}\n</tool_call><|im_end|>'
    )
    turns = read_conversation(row)
    assert render(tokenizer, turns) == (
        '<|im_start|>system\nAdd.\n\n<tools>\n{"name": "add"}\n</tools>\n'
        'Call: <tool_call>\n{"name": ..., "arguments": {...}}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\n07+38=<|im_end|>\n"
        f"<|im_start|>assistant\n{calls}\n"
        "<|im_start|>user\n<tool_response>\n45\n</tool_response>\n<tool_response>\n46\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n045<|im_end|>\n"
    )
    assert learned(tokenizer, tokenize_conversation(tokenizer, turns, 512)) == [calls, "045<|im_end|>"]


@pytest.mark.parametrize("template", [QWEN, SHUT])
@pytest.mark.parametrize("turn", [THINK, TAGGED])
def test_thinking_is_learned_in_the_form_that_a_template_gives_it(tokenizer, monkeypatch, template, turn):
    monkeypatch.setattr(tokenizer, "chat_template", template)
    opened = "<think>\n" if template is QWEN else ""  # the other generation prompt opens the block itself
    assert spoken(tokenizer, [ASK, turn]) == [f"{opened}7+8=15\n</think>\n\n045<|im_end|>"]


def test_an_empty_thinking_block_of_the_generation_prompt_is_not_learned(tokenizer, monkeypatch):
    monkeypatch.setattr(tokenizer, "chat_template", SHUT)
    assert spoken(tokenizer, [ASK, SAY]) == ["045<|im_end|>"]


@pytest.mark.parametrize("turn", [THINK, TAGGED])
def test_a_turn_whose_thinking_the_template_drops_is_not_learned(tokenizer, monkeypatch, turn):
    monkeypatch.setattr(tokenizer, "chat_template", QWEN)
    assert spoken(tokenizer, [ASK, turn, ASK, SAY]) == ["<think>\n\n</think>\n\n045<|im_end|>"]


def test_dropped_thinking_is_not_found_in_what_others_say_later(tokenizer, monkeypatch):
    monkeypatch.setattr(tokenizer, "chat_template", QWEN)
    turns = [ASK, THINK, {"role": "user", "content": "7+8=15 and 045"}, SAY]
    assert spoken(tokenizer, turns) == ["<think>\n\n</think>\n\n045<|im_end|>"]


def test_a_template_that_cannot_join_what_a_row_holds_is_one_line(tokenizer, monkeypatch):
    monkeypatch.setattr(tokenizer, "chat_template", "{{ messages[0].content + none }}")
    with pytest.raises(ValueError, match="the tokenizer's chat template refuses it: can only concatenate"):
        render(tokenizer, [ASK])


def test_nothing_is_learned_of_a_text_whose_beginning_depends_on_what_follows(tokenizer, monkeypatch):
    template = "{{ messages | length }} turns: {% for m in messages %}{{ m.content }} {% endfor %}{{ eos_token }}"
    monkeypatch.setattr(tokenizer, "chat_template", template)
    assert spoken(tokenizer, [ASK, SAY]) == []


def test_a_turn_whose_tool_call_the_template_does_not_write_is_not_learned(tokenizer, monkeypatch):
    monkeypatch.setattr(tokenizer, "chat_template", QWEN)
    calling = {"role": "assistant", "content": "I ask.", "tool_calls": [{"name": "add", "arguments": {}}]}
    assert spoken(tokenizer, [ASK, calling, {"role": "tool", "content": "45"}, SAY]) == [
        "<think>\n\n</think>\n\n045<|im_end|>"
    ]
