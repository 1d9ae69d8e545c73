"""Rows as the model sees them: texts, and conversations as a chat template writes them. Imports no torch."""

from collections.abc import Iterator
from itertools import pairwise
from typing import TypedDict

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from dataset.turns import Turn, call_name

IGNORED = -100


class Example(TypedDict):
    """One tokenized row; ``labels`` repeats the tokens that are learned and is -100 elsewhere."""

    input_ids: list[int]
    labels: list[int]


def tokenize_text(tokenizer: PreTrainedTokenizerBase, text: str, max_seq_len: int | None) -> Example:
    """Return the text between a begin token, if the tokenizer has one, and an end token, which the cut leaves."""
    begin = [] if tokenizer.bos_token_id is None else [tokenizer.bos_token_id]
    ids = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
    if max_seq_len is not None:
        ids = ids[: max(max_seq_len - len(begin) - 1, 0)]
    input_ids = [*begin, *ids, tokenizer.eos_token_id]
    return Example(input_ids=input_ids, labels=list(input_ids))


def tokenize_conversation(
    tokenizer: PreTrainedTokenizerBase, turns: list[Turn], max_seq_len: int, *, last_only: bool = False
) -> Example:
    """Return the conversation as the chat template writes it, with what the assistant says as labels.

    Context and speech are tokenized apart, as they are when a completion is sampled: no token spans their border.

    Args:
        tokenizer: Brings the chat template.
        turns: The conversation.
        max_seq_len: Tokens that are kept, from the beginning.
        last_only: Learn only the last turn, which the assistant says.

    Raises:
        ValueError: the template refuses the conversation.
    """
    text = render(tokenizer, turns)
    spans = assistant_spans(tokenizer, turns, text, since=len(turns) - 1 if last_only else 0)
    borders = [border for span in spans for border in span]
    input_ids: list[int] = []
    labels: list[int] = []
    for number, (start, end) in enumerate(pairwise([0, *borders, len(text)])):
        ids = tokenizer(text[start:end], add_special_tokens=False, verbose=False)["input_ids"] if end > start else []
        input_ids += ids
        labels += ids if number % 2 else [IGNORED] * len(ids)
    return Example(input_ids=input_ids[:max_seq_len], labels=labels[:max_seq_len])


def render(tokenizer: PreTrainedTokenizerBase, turns: list[Turn], *, generation_prompt: bool = False) -> str:
    """Return the conversation as the chat template writes it, with the tools that a system turn brings."""
    tools = next((turn["tools"] for turn in turns if turn.get("tools")), None)
    try:
        return str(
            tokenizer.apply_chat_template(turns, tools=tools, tokenize=False, add_generation_prompt=generation_prompt)
        )
    except (TemplateError, TypeError) as error:  # a template that joins what is no text
        raise ValueError(f"the tokenizer's chat template refuses it: {error}") from None


def assistant_spans(
    tokenizer: PreTrainedTokenizerBase, turns: list[Turn], text: str, *, since: int = 0
) -> list[tuple[int, int]]:
    """Return where in ``text`` the assistant speaks, from after the generation prompt through the end-of-turn token.

    A turn that the template rewrites once others follow it, as some do with earlier reasoning, is left out; so are
    turns before number ``since``.
    """
    spans: list[tuple[int, int]] = []
    for number, turn in enumerate(turns):
        if turn["role"] != "assistant" or number < since:
            continue
        start = _speech_start(tokenizer, turns[:number], text)
        said = _said_until(text, start, turn, eos=str(tokenizer.eos_token)) if start is not None else None
        if start is not None and said is not None:
            spans.append((start, _end_of_turn(tokenizer, text, said)))
    return spans


def _speech_start(tokenizer: PreTrainedTokenizerBase, before: list[Turn], text: str) -> int | None:
    """Return where the generation prompt after ``before`` ends in ``text``, or where they part.

    They part when a template's generation prompt opens, or shuts, a thinking block that the turn has not.
    """
    prompt = render(tokenizer, before, generation_prompt=True)
    if text.startswith(prompt):
        return len(prompt)
    context = render(tokenizer, before)
    if not text.startswith(context) or not prompt.startswith(context):
        return None
    parting = (place for place, (one, other) in enumerate(zip(prompt, text, strict=False)) if one != other)
    return next(parting, min(len(prompt), len(text)))


def _said_until(text: str, start: int, turn: Turn, *, eos: str) -> int | None:
    """Return where the last of what the turn says ends in ``text``; None when part of it stands there no more."""
    position = start
    for part in _parts(turn):
        found = text.find(part, position)
        if found < 0 or eos in text[position:found]:
            return None
        position = found + len(part)
    return position


def _parts(turn: Turn) -> Iterator[str]:
    """Yield what a template may move apart: the thinking, what is said, and the names of the tools that are called."""
    thought, closed, said = turn["content"].rpartition("</think>")
    yield str(turn.get("reasoning_content", "")).strip()
    if closed:
        yield thought.partition("<think>")[2].strip()
    yield said.strip()
    yield from (call_name(call) or "" for call in turn.get("tool_calls", []))


def _end_of_turn(tokenizer: PreTrainedTokenizerBase, text: str, said: int) -> int:
    eos = str(tokenizer.eos_token)
    found = text.find(eos, said)
    return found + len(eos) if found >= 0 else said
