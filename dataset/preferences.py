"""Pairs of conversations of which one is preferred: only what the assistant says last is learned."""

from pathlib import Path
from typing import TypedDict

from transformers import PreTrainedTokenizerBase

from dataset.conversations import require_label
from dataset.errors import Skipped
from dataset.formats import read_pair
from dataset.jsonl import JsonLines, Row
from dataset.rendering import Example, tokenize_conversation
from dataset.turns import Turn


class Preference(TypedDict):
    """Two tokenized conversations with the same prompt; the labels are those of the completion."""

    chosen: Example
    rejected: Example


class PreferenceRows:
    """The pairs of a file in the DPO format, tokenized when asked for, both cut on the right at ``max_seq_len``.

    ``strict`` and ``skipped`` are those of ``ConversationRows``; either side needs a label.
    """

    def __init__(
        self, path: str | Path, tokenizer: PreTrainedTokenizerBase, max_seq_len: int, *, strict: bool = True
    ) -> None:
        self.rows = JsonLines(path, check=read_pair, strict=strict)
        self.skipped: Skipped = self.rows.skipped
        self.tokenizer = tokenizer
        self.max_seq_len = max_seq_len
        self.strict = strict

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Preference:
        return self.rows.parsed(index, self._tokenized)

    def _tokenized(self, row: Row) -> Preference:
        pair = read_pair(row)
        return Preference(chosen=self._side("chosen", pair.chosen), rejected=self._side("rejected", pair.rejected))

    def _side(self, name: str, turns: list[Turn]) -> Example:
        example = tokenize_conversation(self.tokenizer, turns, self.max_seq_len, last_only=True)
        try:
            return require_label(example, self.max_seq_len) if self.strict else example
        except ValueError as error:
            raise ValueError(f"{name!r} {error}") from None
