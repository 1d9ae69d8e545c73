"""Rows that ask for a completion, and their tokens."""

from pathlib import Path

from transformers import PreTrainedTokenizerBase

from dataset.conversations import render
from dataset.formats import Prompt, Turn, read_prompt
from dataset.jsonl import JsonLines, Row

__all__ = ["Prompt", "PromptRows", "Turn", "prompt_ids"]


class PromptRows:
    """The prompts of a file in the RLAIF format; one that ``tokenizer`` cannot write is a DataError as well."""

    def __init__(self, path: str | Path, tokenizer: PreTrainedTokenizerBase | None = None) -> None:
        self.rows = JsonLines(path)
        self.tokenizer = tokenizer

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Prompt:
        return self.rows.parsed(index, self._read)

    def _read(self, row: Row) -> Prompt:
        prompt = read_prompt(row)
        if self.tokenizer is not None:
            render(self.tokenizer, prompt.messages, generation_prompt=True)
        return prompt


def prompt_ids(
    tokenizer: PreTrainedTokenizerBase, messages: list[Turn], max_seq_len: int, *, thinking: bool = False
) -> list[int]:
    """Return the prompt's tokens, its end being where the assistant begins to speak.

    A prompt longer than ``max_seq_len`` loses its beginning, never the generation prompt at its end.
    """
    text = render(tokenizer, messages, generation_prompt=True) + ("<think>\n" if thinking else "")
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids[-max_seq_len:]
