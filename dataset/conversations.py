"""Conversations to learn from: the assistant's words are the labels, everything else is context."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from dataset.errors import Skipped
from dataset.formats import read_conversation
from dataset.jsonl import JsonLines, Row
from dataset.rendering import IGNORED, Example, render, tokenize_conversation

__all__ = [
    "IGNORED",
    "ConversationRows",
    "Example",
    "collate",
    "render",
    "require_label",
    "tokenize_conversation",
    "unlabelled_rows",
]


class ConversationRows:
    """The conversations of a file in the SFT format, tokenized when asked for and cut at ``max_seq_len``.

    A row that cannot be used stops with ``strict``, and so does, when it is read, one whose cut leaves no label;
    else the former are left out and counted in ``skipped``, and the latter have labels of -100 alone.
    """

    def __init__(
        self, path: str | Path, tokenizer: PreTrainedTokenizerBase, max_seq_len: int, *, strict: bool = True
    ) -> None:
        self.rows = JsonLines(path, check=read_conversation, strict=strict)
        self.skipped: Skipped = self.rows.skipped
        self.tokenizer = tokenizer
        self.max_seq_len = max_seq_len
        self.strict = strict

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Example:
        return self.rows.parsed(index, self._tokenized)

    def _tokenized(self, row: Row) -> Example:
        example = tokenize_conversation(self.tokenizer, read_conversation(row), self.max_seq_len)
        return require_label(example, self.max_seq_len) if self.strict else example


def require_label(example: Example, max_seq_len: int) -> Example:
    """Return the example, which teaches something.

    Raises:
        ValueError: no token is learned.
    """
    if all(label == IGNORED for label in example["labels"]):
        raise ValueError(f"keeps no token to learn within --max_seq_len {max_seq_len}")
    return example


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
