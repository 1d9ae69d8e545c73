"""Rows that ask for a completion, and their tokens."""

from pathlib import Path

from transformers import PreTrainedTokenizerBase

from dataset.formats import Prompt, Turn, read_prompt
from dataset.jsonl import JsonLines

__all__ = ["Prompt", "PromptRows", "Turn", "prompt_ids"]


class PromptRows:
    """The prompts of a file in the RLAIF format."""

    def __init__(self, path: str | Path) -> None:
        self.rows = JsonLines(path)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Prompt:
        return self.rows.parsed(index, read_prompt)


def prompt_ids(tokenizer: PreTrainedTokenizerBase, messages: list[Turn], max_seq_len: int, *,
               thinking: bool = False) -> list[int]:
    """Return the prompt's tokens, its end being where the assistant begins to speak.

    A prompt longer than ``max_seq_len`` loses its beginning, never the generation prompt at its end.
    """
    text = str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))
    text += "<think>\n" if thinking else ""
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids[-max_seq_len:]
