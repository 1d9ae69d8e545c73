"""The turns of a conversation, as chat templates take them. Imports no torch."""

import json
from typing import Any

ROLES = ("system", "user", "assistant", "tool")
Turn = dict[
    str, Any
]  # role and content, both text; a system turn's tools; an assistant's reasoning_content, tool_calls


def read_turns(listed: list[Any]) -> list[Turn]:
    """Return the turns with the keys that chat templates know; what is null or empty counts as absent.

    Raises:
        ValueError: a role is unknown, a turn says nothing, tools are none, or the first turn asks nothing.
    """
    turns = [_read_turn(turn, number) for number, turn in enumerate(listed, start=1)]
    if not turns or turns[0]["role"] not in ("system", "user"):
        raise ValueError("must begin with a system or a user turn")
    return turns


def encodable(text: str) -> str:
    """Refuse half of a surrogate pair, which JSON can write (``\\ud83d``) and no tokenizer can read."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("holds half of a surrogate pair, which is no text") from None
    return text


def _read_turn(turn: Any, number: int) -> Turn:
    if not isinstance(turn, dict) or not {"role", "content"} <= turn.keys():
        raise ValueError(f"turn {number} must have 'role' and 'content'")
    role = turn["role"]
    if role not in ROLES:
        raise ValueError(f"turn {number} has role {role!r}; known: {', '.join(ROLES)}")
    where = f"turn {number} ({role})"
    read: Turn = {"role": role, "content": turn["content"]}
    if role == "system" and turn.get("tools"):
        read["tools"] = _listed(turn["tools"], f"{where}: 'tools'")
    if role == "assistant":
        read |= _read_speech(turn, where)
        if "tool_calls" in read and turn["content"] is None:
            read["content"] = ""
    if not isinstance(read["content"], str) or not (read["content"].strip() or read.keys() & {"tools", "tool_calls"}):
        raise ValueError(f"{where} must have text as its content")
    encodable(read["content"])
    return read


def _read_speech(turn: dict[str, Any], where: str) -> Turn:
    read: Turn = {}
    if thought := turn.get("reasoning_content"):
        if not isinstance(thought, str):
            raise ValueError(f"{where}: 'reasoning_content' must be text")
        read["reasoning_content"] = encodable(thought)
    if turn.get("tool_calls"):
        read["tool_calls"] = _listed(turn["tool_calls"], f"{where}: 'tool_calls'")
        if not all(call_name(call) for call in read["tool_calls"]):
            raise ValueError(f"{where}: a tool call has no 'name'")
    return read


def call_name(call: dict[str, Any]) -> str | None:
    """Return the name of the function that a tool call, with or without a ``function`` around it, asks for."""
    function = call.get("function", call)
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) and name else None


def _listed(value: Any, what: str) -> list[dict[str, Any]]:
    """Return a list of objects, which may be written as JSON text."""
    try:
        listed = json.loads(value) if isinstance(value, str) else value
    except (json.JSONDecodeError, RecursionError):
        raise ValueError(f"{what} is not JSON") from None
    if not isinstance(listed, list) or not listed or not all(isinstance(entry, dict) for entry in listed):
        raise ValueError(f"{what} must be a list of objects")
    encodable(json.dumps(listed, ensure_ascii=False))
    return listed
