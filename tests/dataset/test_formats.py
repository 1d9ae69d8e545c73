import pytest

from dataset.formats import Pair, Prompt, read_conversation, read_pair, read_prompt, read_text

ASK = {"role": "user", "content": "07+38="}
SAY = {"role": "assistant", "content": "045"}
SYSTEM = {"role": "system", "content": "Add."}
SILENT = {"role": "assistant", "content": ""}


def test_roles_are_read_and_not_counted():
    assert read_conversation({"conversations": [SYSTEM, ASK, SAY]}) == [SYSTEM, ASK, SAY]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"messages": []}, "has no key 'conversations' (found 'messages')"),
        ({}, "has no key 'conversations' (found nothing)"),
        ({"conversations": []}, "'conversations' must be a list of turns, not empty"),
        ({"conversations": "07+38"}, "'conversations' must be a list of turns, not empty"),
        ({"conversations": [ASK, {"role": "assistant"}]}, "turn 2 must have 'role' and 'content'"),
        ({"conversations": [ASK, "045"]}, "turn 2 must have 'role' and 'content'"),
        (
            {"conversations": [{"role": "human", "content": "hi"}]},
            "turn 1 has role 'human'; known: system, user, assistant, tool",
        ),
        ({"conversations": [ASK, SILENT]}, "turn 2 (assistant) must have text as its content"),
        (
            {"conversations": [ASK, {"role": "assistant", "content": 45}]},
            "turn 2 (assistant) must have text as its content",
        ),
        ({"conversations": [SAY]}, "must begin with a system or a user turn"),
        ({"conversations": [ASK]}, "has no assistant turn"),
        (
            {"conversations": [ASK, {"role": "assistant", "content": "\ud83d"}]},
            "holds half of a surrogate pair, which is no text",
        ),
    ],
)
def test_a_conversation_in_another_form_is_refused(row, reason):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the exact message is compared below
        read_conversation(row)
    assert str(caught.value) == reason


def test_only_a_trailing_assistant_turn_is_dropped_from_a_prompt():
    prompt = Prompt(messages=[SYSTEM, ASK, SAY, ASK], answer=None)
    assert read_prompt({"conversations": [SYSTEM, ASK, SAY, ASK, SILENT]}) == prompt
    assert read_prompt({"conversations": [SYSTEM, ASK, SAY, ASK]}) == prompt


@pytest.mark.parametrize(
    ("extra", "answer"),
    [
        ({}, None),
        ({"answer": None}, None),
        ({"answer": "045"}, "045"),
        ({"answer": 45}, "45"),
        ({"gt": " 45\n"}, "45"),
        ({"gt": 4.5}, "4.5"),
        ({"answer": "a", "gt": "b"}, "a"),
        ({"answer": 0}, "0"),
    ],
)
def test_the_answer_is_optional_and_may_be_a_number(extra, answer):
    assert read_prompt({"conversations": [ASK], **extra}).answer == answer


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (
            {"conversations": [ASK, SAY, SILENT]},
            "must end with a user turn, apart from one assistant turn (found assistant)",
        ),
        (
            {"conversations": [SYSTEM, SILENT]},
            "must end with a user turn, apart from one assistant turn (found system)",
        ),
        ({"conversations": [SILENT]}, "must begin with a system or a user turn"),
        ({"conversations": [ASK], "answer": ["45"]}, "'answer' must be text or a number"),
        ({"conversations": [ASK], "answer": True}, "'answer' must be text or a number"),
        ({"conversations": [ASK], "gt": " "}, "'gt' must be text or a number"),
    ],
)
def test_a_prompt_in_another_form_is_refused(row, reason):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the exact message is compared below
        read_prompt(row)
    assert str(caught.value) == reason


def test_a_text_is_read_as_it_stands():
    assert read_text({"text": " 07+38=045\n"}) == " 07+38=045\n"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"content": "a"}, "has no key 'text' (found 'content')"),
        ({"text": " \n"}, "'text' must be text, not empty"),
        ({"text": ["a"]}, "'text' must be text, not empty"),
        ({"text": "\udc80"}, "holds half of a surrogate pair, which is no text"),
    ],
)
def test_a_text_in_another_form_is_refused(row, reason):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the exact message is compared below
        read_text(row)
    assert str(caught.value) == reason


MISS = {"role": "assistant", "content": "046"}


@pytest.mark.parametrize(
    "row",
    [
        {"chosen": [ASK, SAY], "rejected": [ASK, MISS]},
        {"prompt": "07+38=", "chosen": "045", "rejected": "046"},
        {"prompt": [ASK], "chosen": [SAY], "rejected": [MISS]},
        {"prompt": "07+38=", "chosen": [ASK, SAY], "rejected": [ASK, MISS]},
    ],
)
def test_a_pair_is_read_from_whole_conversations_or_from_a_prompt_with_completions(row):
    assert read_pair(row) == Pair(chosen=[ASK, SAY], rejected=[ASK, MISS])


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"chosen": [ASK, SAY]}, "has no key 'rejected' (found 'chosen')"),
        ({"chosen": [SAY], "rejected": [MISS]}, "has no key 'prompt' (found 'chosen', 'rejected')"),
        (
            {"chosen": [ASK, SAY], "rejected": [ASK, SILENT]},
            "'rejected': turn 2 (assistant) must have text as its content",
        ),
        ({"chosen": [ASK, SAY, ASK], "rejected": [ASK, MISS]}, "'chosen' must end with an assistant turn (found user)"),
        (
            {"chosen": [SYSTEM, ASK, SAY], "rejected": [ASK, MISS]},
            "'chosen' and 'rejected' must have all turns but the last in common",
        ),
        ({"chosen": [], "rejected": [ASK, MISS]}, "'chosen' must be a list of turns, not empty"),
    ],
)
def test_a_pair_in_another_form_is_refused(row, reason):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the exact message is compared below
        read_pair(row)
    assert str(caught.value) == reason
