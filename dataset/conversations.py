"""Conversations to learn from: the assistant's words are the labels, everything else is context."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TypedDict

import torch
from jinja2 import TemplateError
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from dataset.formats import Turn, read_conversation
from dataset.jsonl import JsonLines, Row

IGNORED = -100


class Example(TypedDict):
    """One tokenized conversation; ``labels`` repeats the tokens that are learned and is -100 elsewhere."""

    input_ids: list[int]
    labels: list[int]


class ConversationRows:
    """The conversations of a file in the SFT format, tokenized when asked for and cut at ``max_seq_len``."""

    def __init__(self, path: str | Path, tokenizer: PreTrainedTokenizerBase, max_seq_len: int) -> None:
        self.rows = JsonLines(path)
        self.tokenizer = tokenizer
        self.max_seq_len = max_seq_len

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Example:
        return self.rows.parsed(index, self._tokenized)

    def _tokenized(self, row: Row) -> Example:
        return tokenize_conversation(self.tokenizer, read_conversation(row), self.max_seq_len)


def tokenize_conversation(tokenizer: PreTrainedTokenizerBase, turns: list[Turn], max_seq_len: int) -> Example:
    """Return the conversation as the chat template writes it, with what the assistant says as labels.

    Context and speech are tokenized apart, as they are when a completion is sampled: no token spans their border.

    Raises:
        ValueError: the template refuses the conversation.
    """
    text = render(tokenizer, turns)
    borders = [border for span in assistant_spans(tokenizer, turns, text) for border in span]
    input_ids: list[int] = []
    labels: list[int] = []
    for number, (start, end) in enumerate(pairwise([0, *borders, len(text)])):
        ids = tokenizer(text[start:end], add_special_tokens=False)["input_ids"] if end > start else []
        input_ids += ids
        labels += ids if number % 2 else [IGNORED] * len(ids)
    return Example(input_ids=input_ids[:max_seq_len], labels=labels[:max_seq_len])


def render(tokenizer: PreTrainedTokenizerBase, turns: list[Turn], *, generation_prompt: bool = False) -> str:
    """Return the conversation as the chat template writes it."""
    try:
        return str(tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=generation_prompt))
    except TemplateError as error:
        raise ValueError(f"the tokenizer's chat template refuses it: {error}") from None


def assistant_spans(tokenizer: PreTrainedTokenizerBase, turns: list[Turn], text: str) -> list[tuple[int, int]]:
    """Return where in ``text`` the assistant speaks, from after the generation prompt through the end-of-turn token.

    A turn that the template rewrites once others follow it, as some do with earlier reasoning, is left out.
    """
    spans: list[tuple[int, int]] = []
    for number, turn in enumerate(turns):
        if turn["role"] != "assistant":
            continue
        before = render(tokenizer, turns[:number], generation_prompt=True)
        said = text.find(turn["content"].strip(), len(before)) if text.startswith(before) else -1
        if said >= 0:
            spans.append((len(before), _end_of_turn(tokenizer, text, said + len(turn["content"].strip()))))
    return spans


def _end_of_turn(tokenizer: PreTrainedTokenizerBase, text: str, said: int) -> int:
    eos = str(tokenizer.eos_token)
    found = text.find(eos, said)
    return found + len(eos) if found >= 0 else said


def collate(rows: Sequence[Example], pad_id: int) -> dict[str, Tensor]:
    """Return ``input_ids``, ``attention_mask`` and ``labels`` of a batch, [B, S] each, padded on the right."""
    longest = max(len(row["input_ids"]) for row in rows)
    lengths = torch.tensor([len(row["input_ids"]) for row in rows])
    return {
        "input_ids": torch.tensor([_padded(row["input_ids"], longest, pad_id) for row in rows]),
        "attention_mask": (torch.arange(longest)[None] < lengths[:, None]).long(),  # from lengths: pad may equal EOS
        "labels": torch.tensor([_padded(row["labels"], longest, IGNORED) for row in rows]),
    }


def unlabelled_rows(labels: Tensor) -> int:
    """Return how many rows of ``labels``, [B, S], teach nothing because the cut left the assistant no token."""
    return int((labels == IGNORED).all(dim=1).sum())


def _padded(values: list[int], length: int, filler: int) -> list[int]:
    return values + [filler] * (length - len(values))
