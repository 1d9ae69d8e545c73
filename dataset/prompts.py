"""Rows that ask for a completion, and their tokens."""

from pathlib import Path

from transformers import PreTrainedTokenizerBase

from dataset.errors import Skipped
from dataset.formats import Prompt, read_prompt
from dataset.jsonl import JsonLines, Row
from dataset.rendering import render
from dataset.turns import Turn

__all__ = ["Prompt", "PromptRows", "Turn", "prompt_ids"]


class PromptRows:
    """The prompts of a file in the RLAIF format; one that ``tokenizer`` cannot write is a DataError as well.

    With ``max_seq_len``, a prompt that has more tokens cannot be used either. ``strict`` refuses the file at the
    first row that cannot be used; else such rows are left out and counted in ``skipped``. ``has_answers`` says
    whether any row that is left carries an answer.
    """

    def __init__(
        self,
        path: str | Path,
        tokenizer: PreTrainedTokenizerBase | None = None,
        max_seq_len: int | None = None,
        *,
        strict: bool = True,
    ) -> None:
        self.tokenizer = tokenizer
        self.max_seq_len = max_seq_len
        self.has_answers = False
        self.rows = JsonLines(path, check=self._check, strict=strict)
        self.skipped: Skipped = self.rows.skipped

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Prompt:
        return self.rows.parsed(index, self._read)

    def _check(self, row: Row) -> None:
        prompt = read_prompt(row)
        if self.tokenizer is not None and self.max_seq_len is not None:
            require_length(self.tokenizer, prompt.messages, self.max_seq_len)
        self.has_answers |= prompt.answer is not None

    def _read(self, row: Row) -> Prompt:
        prompt = read_prompt(row)
        if self.tokenizer is not None:
            render(self.tokenizer, prompt.messages, generation_prompt=True)
        return prompt


def require_length(tokenizer: PreTrainedTokenizerBase, messages: list[Turn], max_seq_len: int) -> None:
    """Raise ValueError when a prompt has more than ``max_seq_len`` tokens, or the template refuses it."""
    text = render(tokenizer, messages, generation_prompt=True)
    length = len(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])
    if length > max_seq_len:
        raise ValueError(f"its prompt has {length} tokens, more than --max_seq_len {max_seq_len}")


def prompt_ids(
    tokenizer: PreTrainedTokenizerBase, messages: list[Turn], max_seq_len: int, *, thinking: bool = False
) -> list[int]:
    """Return the prompt's tokens, its end being where the assistant begins to speak.

    A prompt longer than ``max_seq_len`` loses its beginning, never the generation prompt at its end.
    """
    text = render(tokenizer, messages, generation_prompt=True) + ("<think>\n" if thinking else "")
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids[-max_seq_len:]
