import pytest

from dataset.formats import Prompt
from trainers.configs import GRPOConfig
from trainers.errors import ConfigurationError
from trainers.rewards import (
    BOUNDS,
    answer_part,
    answer_reward,
    length_reward,
    repetition_penalty,
    reward_weights,
    score_completions,
    thinking_reward,
)

SUM = Prompt(messages=[{"role": "user", "content": "07+38="}], answer="045")


@pytest.mark.parametrize(("length", "reward"), [(0, -0.5), (19, -0.5), (20, 0.5), (800, 0.5), (801, -0.5)])
def test_twenty_to_eight_hundred_characters_are_a_good_length(length, reward):
    assert length_reward("x" * length) == reward
    assert length_reward(f"  {'x' * length}\n") == reward, "white space around the text does not count"


@pytest.mark.parametrize(
    ("text", "reward"),
    [
        ("no tag at all", 0.0),
        ("x" * 19 + "</think>4", -0.5 + 0.25),
        ("x" * 20 + "</think>4", 1.0 + 0.25),
        ("x" * 300 + "</think>4", 1.0 + 0.25),
        ("x" * 301 + "</think>4", -0.5 + 0.25),
        ("x" * 20 + "</think>4</think>", 1.0 - 0.25),
        ("</think></think>", -0.5 - 0.25),
    ],
)
def test_thinking_is_worth_its_length_and_a_single_closing_tag(text, reward):
    assert thinking_reward(text) == reward


@pytest.mark.parametrize(
    ("text", "penalty"),
    [
        ("", 0.0),
        ("two words", 0.0),
        ("a b c d", 0.0),
        ("a b c a b c", -0.25),  # trigrams abc bca cab abc: 1 of 4 repeats
        ("A, b! a, B!", -2 / 6),  # words and marks a , b ! a , b ! make six trigrams, and two repeat
        ("x x x x x x", -0.5),  # 3 of 4 repeat: -0.75, held at -0.5
    ],
)
def test_repeated_trigrams_cost_their_share_and_at_most_a_half(text, penalty):
    assert repetition_penalty(text) == pytest.approx(penalty)


def test_the_answer_is_what_follows_the_first_closing_tag():
    assert answer_part("because</think>\n 045 \n") == "045"
    assert answer_part(" 045 ") == "045"
    assert answer_part("a</think>b</think>c") == "b</think>c"


@pytest.mark.parametrize(
    ("text", "reward"),
    [
        ("045", 1.0),
        (" 045\n", 1.0),
        ("thinking</think>045", 1.0),
        ("45", 0.0),
        ("045.", 0.0),
        ("045</think>", 0.0),
        ("", 0.0),
    ],
)
def test_only_the_exact_answer_after_any_thinking_counts(text, reward):
    assert answer_reward(text, "045") == reward


def test_a_row_without_an_answer_earns_none():
    assert answer_reward("045", None) == 0.0


def test_the_total_is_the_weighted_sum_and_each_function_is_reported_unweighted():
    rewards = score_completions(["045", "x" * 20], [SUM, SUM], {"length": 2.0, "answer": 3.0})
    assert rewards.each["length"].tolist() == [-0.5, 0.5]
    assert rewards.each["answer"].tolist() == [1.0, 0.0]
    assert rewards.total.tolist() == [2.0, 1.0]  # 2 * -0.5 + 3 * 1;  2 * 0.5 + 3 * 0


def test_the_reward_model_sees_the_conversation_with_the_answer_part_and_its_score_is_held_at_three():
    seen = []
    scores = score_completions(
        ["why</think> 045", "x"],
        [SUM, SUM],
        {"reward_model": 1.0},
        lambda conversations: seen.extend(conversations) or [9.0, -4.5],
    )
    assert seen[0] == [*SUM.messages, {"role": "assistant", "content": "045"}]
    assert scores.each["reward_model"].tolist() == [3.0, -3.0]
    assert scores.total.tolist() == [3.0, -3.0]


def test_everything_perfect_reaches_the_upper_bounds_and_everything_wrong_the_lower_ones():
    weights = dict.fromkeys(BOUNDS, 1.0)
    best = "x" * 20 + "</think>045"
    worst = "</think></think>" + "a " * 500
    rewards = score_completions([best, worst], [SUM, SUM], weights, lambda _: [9.0, -9.0])
    assert {name: tuple(reversed(values.tolist())) for name, values in rewards.each.items()} == BOUNDS
    assert rewards.total.tolist() == [5.75, -4.75]


def weights_of(*, has_answers: bool = True, **flags: object) -> dict[str, float]:
    return reward_weights(GRPOConfig(**flags), has_answers=has_answers)


def test_functions_that_are_off_or_weigh_nothing_are_not_computed():
    assert weights_of(reasoning=0, reward_model_path="none") == {"length": 1, "repetition": 1, "answer": 1}
    assert weights_of(reasoning=0, reward_model_path="none", reward_weights="answer=2,length=0,repetition=0") == {
        "answer": 2.0
    }
    assert list(weights_of()) == ["length", "thinking", "repetition", "reward_model", "answer"]


def test_data_without_answers_switches_the_answer_reward_off():
    assert "answer" not in weights_of(has_answers=False)


def test_a_lone_answer_reward_without_answers_is_refused():
    only_answer = "length=0,thinking=0,repetition=0,reward_model=0"
    with pytest.raises(ConfigurationError, match=r"no row of \S+rlaif-mini.jsonl has an answer"):
        weights_of(has_answers=False, reward_weights=only_answer)


def test_no_reward_at_all_is_refused():
    with pytest.raises(ConfigurationError, match="no reward is left"):
        weights_of(reasoning=0, reward_model_path="none", reward_weights="length=0,repetition=0,answer=0")
