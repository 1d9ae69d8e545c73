"""The formats of one row: a conversation to learn from, and a prompt with or without an answer. Imports no torch.

Both hold ``{"conversations": [{"role": ..., "content": ...}, ...]}``; a prompt may add an ``answer`` (or ``gt``).
"""

from dataclasses import dataclass
from typing import Any

ROLES = ("system", "user", "assistant", "tool")
Turn = dict[str, str]  # role and content: what one party says, as chat templates take it


@dataclass(frozen=True)
class Prompt:
    """What is asked, and the answer that is right, if the row carries one."""

    messages: list[Turn]
    answer: str | None


def read_conversation(row: dict[str, Any]) -> list[Turn]:
    """Return the turns of a row that is learned from: someone asks, and the assistant says something.

    Raises:
        ValueError: a key is missing, a role is unknown, a turn is empty, or the assistant says nothing.
    """
    turns = _read_turns(_listed(row))
    if not any(turn["role"] == "assistant" for turn in turns):
        raise ValueError("has no assistant turn")
    return turns


def read_prompt(row: dict[str, Any]) -> Prompt:
    """Return the turns that ask, without a trailing assistant turn (it may be empty), and the answer.

    Raises:
        ValueError: as ``read_conversation``, or the last turn that remains is not the user's.
    """
    listed = _listed(row)
    if isinstance(listed[-1], dict) and listed[-1].get("role") == "assistant":
        listed = listed[:-1]
    turns = _read_turns(listed)
    if turns[-1]["role"] != "user":
        raise ValueError(f"must end with a user turn, apart from one assistant turn (found {turns[-1]['role']})")
    return Prompt(messages=turns, answer=_read_answer(row))


def _listed(row: dict[str, Any]) -> list[Any]:
    if "conversations" not in row:
        raise ValueError(f"has no key 'conversations' (found {', '.join(map(repr, row)) or 'nothing'})")
    turns = row["conversations"]
    if not isinstance(turns, list) or not turns:
        raise ValueError("'conversations' must be a list of turns, not empty")
    return turns


def _read_turns(listed: list[Any]) -> list[Turn]:
    turns = [_read_turn(turn, number) for number, turn in enumerate(listed, start=1)]
    if not turns or turns[0]["role"] not in ("system", "user"):
        raise ValueError("must begin with a system or a user turn")
    return turns


def _read_turn(turn: Any, number: int) -> Turn:
    if not isinstance(turn, dict) or not {"role", "content"} <= turn.keys():
        raise ValueError(f"turn {number} must have 'role' and 'content'")
    role, content = turn["role"], turn["content"]
    if role not in ROLES:
        raise ValueError(f"turn {number} has role {role!r}; known: {', '.join(ROLES)}")
    if not isinstance(content, str) or not content.strip():
        raise ValueError(f"turn {number} ({role}) must have text as its content")
    return {"role": role, "content": _encodable(content)}


def _read_answer(row: dict[str, Any]) -> str | None:
    key = "answer" if row.get("answer") is not None else "gt"
    answer = row.get(key)
    if answer is None:
        return None
    if isinstance(answer, bool) or not isinstance(answer, (str, int, float)) or not str(answer).strip():
        raise ValueError(f"{key!r} must be text or a number")
    return _encodable(str(answer).strip())


def _encodable(text: str) -> str:
    """Refuse half of a surrogate pair, which JSON can write (``\\ud83d``) and no tokenizer can read."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("holds half of a surrogate pair, which is no text") from None
    return text
