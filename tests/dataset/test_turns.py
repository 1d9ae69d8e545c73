import json

import pytest

from dataset.turns import read_turns

ASK = {"role": "user", "content": "07+38="}
TOOL = {"type": "function", "function": {"name": "add", "parameters": {}}}
CALL = {"name": "add", "arguments": {"a": 7, "b": 38}}


def speaking(**keys):
    return {"role": "assistant", "content": "045", **keys}


def test_thinking_stays_beside_what_is_said():
    assert read_turns([ASK, speaking(reasoning_content="7+8=15")])[1] == speaking(reasoning_content="7+8=15")


@pytest.mark.parametrize("empty", [None, "", []])
def test_what_is_empty_counts_as_absent_as_a_table_writes_it(empty):
    system = {"role": "system", "content": "Add.", "tools": empty}
    turns = [system, ASK, speaking(reasoning_content=empty, tool_calls=empty)]
    assert read_turns(turns) == [{"role": "system", "content": "Add."}, ASK, speaking()]


@pytest.mark.parametrize("write", [json.dumps, list])
def test_tools_and_calls_may_be_json_text(write):
    turns = [
        {"role": "system", "content": "", "tools": write([TOOL])},
        ASK,
        {"role": "assistant", "content": "", "tool_calls": write([CALL, {"function": CALL}])},
        {"role": "tool", "content": "45"},
    ]
    read = read_turns(turns)
    assert read[0]["tools"] == [TOOL]
    assert read[2] == {"role": "assistant", "content": "", "tool_calls": [CALL, {"function": CALL}]}


def test_a_turn_that_only_calls_a_tool_may_have_null_as_its_content():
    assert read_turns([ASK, {"role": "assistant", "content": None, "tool_calls": [CALL]}])[1]["content"] == ""


@pytest.mark.parametrize(
    ("turn", "reason"),
    [
        (speaking(reasoning_content=7), "turn 2 (assistant): 'reasoning_content' must be text"),
        (speaking(reasoning_content="\ud83d"), "holds half of a surrogate pair, which is no text"),
        (speaking(tool_calls="[{"), "turn 2 (assistant): 'tool_calls' is not JSON"),
        (speaking(tool_calls=["add"]), "turn 2 (assistant): 'tool_calls' must be a list of objects"),
        (speaking(tool_calls=[{"function": "add"}]), "turn 2 (assistant): a tool call has no 'name'"),
        (speaking(tool_calls=[CALL], content=7), "turn 2 (assistant) must have text as its content"),
        (speaking(reasoning_content="7+8=15", content=""), "turn 2 (assistant) must have text as its content"),
        ({"role": "system", "content": "", "tools": {"a": 1}}, "turn 2 (system): 'tools' must be a list of objects"),
    ],
)
def test_thinking_and_tools_in_another_form_are_refused(turn, reason):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the exact message is compared below
        read_turns([ASK, turn])
    assert str(caught.value) == reason
