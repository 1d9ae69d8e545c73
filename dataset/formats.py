"""The formats of one row: text, a conversation, a pair of which one is preferred, a prompt. Imports no torch.

``{"text": ...}``, ``{"conversations": [turns]}`` (a prompt may add an ``answer`` or ``gt``), and
``{"chosen": [turns], "rejected": [turns]}``, where a ``prompt`` may stand apart.
"""

from dataclasses import dataclass
from typing import Any

from dataset.turns import ROLES, Turn, encodable, read_turns

__all__ = ["ROLES", "Pair", "Prompt", "Turn", "read_conversation", "read_pair", "read_prompt", "read_text"]


@dataclass(frozen=True)
class Prompt:
    """What is asked, and the answer that is right, if the row carries one."""

    messages: list[Turn]
    answer: str | None


@dataclass(frozen=True)
class Pair:
    """Two conversations that differ in what the assistant says last."""

    chosen: list[Turn]
    rejected: list[Turn]


def read_text(row: dict[str, Any]) -> str:
    """Return the text of a row that is pretrained on.

    Raises:
        ValueError: it is missing or empty.
    """
    text = _value(row, "text")
    if not isinstance(text, str) or not text.strip():
        raise ValueError("'text' must be text, not empty")
    return encodable(text)


def read_conversation(row: dict[str, Any]) -> list[Turn]:
    """Return the turns of a row that is learned from: someone asks, and the assistant says something.

    Raises:
        ValueError: a key is missing, a role is unknown, a turn is empty, or the assistant says nothing.
    """
    turns = read_turns(_listed(row, "conversations"))
    if not any(turn["role"] == "assistant" for turn in turns):
        raise ValueError("has no assistant turn")
    return turns


def read_pair(row: dict[str, Any]) -> Pair:
    """Return a preferred and a rejected conversation, which end with the assistant and part at its last turn.

    Raises:
        ValueError: as ``read_conversation``, with the side it concerns, or they part earlier.
    """
    pair = Pair(chosen=_read_side(row, "chosen"), rejected=_read_side(row, "rejected"))
    if pair.chosen[:-1] != pair.rejected[:-1]:
        raise ValueError("'chosen' and 'rejected' must have all turns but the last in common")
    return pair


def read_prompt(row: dict[str, Any]) -> Prompt:
    """Return the turns that ask, without a trailing assistant turn (it may be empty), and the answer.

    Raises:
        ValueError: as ``read_conversation``, or the last turn that remains is neither the user's nor a tool's.
    """
    listed = _listed(row, "conversations")
    if isinstance(listed[-1], dict) and listed[-1].get("role") == "assistant":
        listed = listed[:-1]
    turns = read_turns(listed)
    if turns[-1]["role"] not in ("user", "tool"):
        raise ValueError(f"must end with a user turn, apart from one assistant turn (found {turns[-1]['role']})")
    return Prompt(messages=turns, answer=_read_answer(row))


def _value(row: dict[str, Any], key: str) -> Any:
    if key not in row:
        raise ValueError(f"has no key {key!r} (found {', '.join(map(repr, row)) or 'nothing'})")
    return row[key]


def _listed(row: dict[str, Any], key: str) -> list[Any]:
    turns = _value(row, key)
    if not isinstance(turns, list) or not turns:
        raise ValueError(f"{key!r} must be a list of turns, not empty")
    return turns


def _read_side(row: dict[str, Any], key: str) -> list[Turn]:
    said = _value(row, key)
    listed = [{"role": "assistant", "content": said}] if isinstance(said, str) else _listed(row, key)
    if isinstance(listed[0], dict) and listed[0].get("role") == "assistant":  # else the prompt is repeated there
        prompt = _value(row, "prompt")
        listed = [
            *([{"role": "user", "content": prompt}] if isinstance(prompt, str) else _listed(row, "prompt")),
            *listed,
        ]
    try:
        turns = read_turns(listed)
    except ValueError as error:
        raise ValueError(f"{key!r}: {error}") from None
    if turns[-1]["role"] != "assistant":
        raise ValueError(f"{key!r} must end with an assistant turn (found {turns[-1]['role']})")
    return turns


def _read_answer(row: dict[str, Any]) -> str | None:
    key = "answer" if row.get("answer") is not None else "gt"
    answer = row.get(key)
    if answer is None:
        return None
    if isinstance(answer, bool) or not isinstance(answer, (str, int, float)) or not str(answer).strip():
        raise ValueError(f"{key!r} must be text or a number")
    return encodable(str(answer).strip())
