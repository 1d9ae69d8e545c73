"""Texts to pretrain on: every token is learned."""

from pathlib import Path

from transformers import PreTrainedTokenizerBase

from dataset.errors import Skipped
from dataset.formats import read_text
from dataset.jsonl import JsonLines, Row
from dataset.rendering import Example, tokenize_text


class TextRows:
    """The texts of a file in the pretraining format, tokenized when asked for and cut at ``max_seq_len``."""

    def __init__(
        self, path: str | Path, tokenizer: PreTrainedTokenizerBase, max_seq_len: int, *, strict: bool = True
    ) -> None:
        self.rows = JsonLines(path, check=read_text, strict=strict)
        self.skipped: Skipped = self.rows.skipped
        self.tokenizer = tokenizer
        self.max_seq_len = max_seq_len

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Example:
        return self.rows.parsed(index, self._tokenized)

    def _tokenized(self, row: Row) -> Example:
        return tokenize_text(self.tokenizer, read_text(row), self.max_seq_len)
