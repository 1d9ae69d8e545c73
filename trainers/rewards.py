"""What a completion is worth: rules on its text, a reward model's score, and a right answer."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dataset.formats import Prompt, Turn
from trainers.configs import RolloutConfig, parse_reward_weights
from trainers.errors import ConfigurationError
from trainers.reward_folder import wants_reward_model

THINK_END = "</think>"
MODEL_SCORE_LIMIT = 3.0
BOUNDS = {
    "length": (-0.5, 0.5),
    "thinking": (-0.75, 1.25),
    "repetition": (-0.5, 0.0),
    "reward_model": (-MODEL_SCORE_LIMIT, MODEL_SCORE_LIMIT),
    "answer": (0.0, 1.0),
}

ScoreConversations = Callable[[Sequence[list[Turn]]], list[float]]


@dataclass(frozen=True)
class Rewards:
    """The weighted sum per completion, and each function's own unweighted value."""

    total: Tensor  # [N]
    each: dict[str, Tensor]  # [N] each

    def rows(self, start: int, stop: int) -> "Rewards":
        """Return the rows from ``start`` to ``stop``."""
        return Rewards(
            total=self.total[start:stop], each={name: values[start:stop] for name, values in self.each.items()}
        )


def reward_weights(config: RolloutConfig, *, has_answers: bool) -> dict[str, float]:
    """Return the weight of each reward function that this run computes.

    Raises:
        ConfigurationError: none is left.
    """
    off = {"thinking": not config.reasoning, "reward_model": not wants_reward_model(config), "answer": not has_answers}
    asked = {name: weight for name, weight in parse_reward_weights(config.reward_weights).items() if weight}
    weights = {name: weight for name, weight in asked.items() if not off.get(name)}
    if weights:
        return weights
    if "answer" in asked and not has_answers:
        raise ConfigurationError(
            f"no reward is left: answer is the only one enabled, and no row of {config.data_path} "
            "has an answer; enable another in --reward_weights"
        )
    raise ConfigurationError(
        "no reward is left: set a weight above 0 in --reward_weights, point --reward_model_path "
        "to a folder, or set --reasoning 1 for the thinking reward"
    )


def score_completions(
    texts: Sequence[str],
    prompts: Sequence[Prompt],
    weights: dict[str, float],
    reward_model: ScoreConversations | None = None,
) -> Rewards:
    """Return the rewards of ``texts``, each with the prompt it completes at the same place in ``prompts``."""
    rules: dict[str, Callable[[str, Prompt], float]] = {
        "length": lambda text, _: length_reward(text),
        "thinking": lambda text, _: thinking_reward(text),
        "repetition": lambda text, _: repetition_penalty(answer_part(text)),
        "answer": lambda text, prompt: answer_reward(text, prompt.answer),
    }
    each = {
        name: torch.tensor([rules[name](text, prompt) for text, prompt in zip(texts, prompts, strict=True)])
        for name in weights
        if name in rules
    }
    if "reward_model" in weights:
        assert reward_model is not None
        each["reward_model"] = torch.tensor(
            reward_model(
                [
                    [*prompt.messages, {"role": "assistant", "content": answer_part(text)}]
                    for text, prompt in zip(texts, prompts, strict=True)
                ]
            )
        ).clamp(-MODEL_SCORE_LIMIT, MODEL_SCORE_LIMIT)
    total = torch.stack([weights[name] * values for name, values in each.items()]).sum(dim=0)
    return Rewards(total=total, each=each)


def answer_part(text: str) -> str:
    """Return what follows the first ``</think>``, or all of the text, stripped."""
    return text.split(THINK_END, 1)[-1].strip()


def length_reward(text: str) -> float:
    """Return 0.5 for 20 to 800 characters, else -0.5."""
    return 0.5 if 20 <= len(text.strip()) <= 800 else -0.5


def thinking_reward(text: str) -> float:
    """Return what the thinking before ``</think>`` is worth: its length, and whether the tag stands once; 0 without."""
    if THINK_END not in text:
        return 0.0
    thinking = text.split(THINK_END, 1)[0].strip()
    return (1.0 if 20 <= len(thinking) <= 300 else -0.5) + (0.25 if text.count(THINK_END) == 1 else -0.25)


def repetition_penalty(text: str) -> float:
    """Return minus the share of word trigrams that repeat an earlier one, at most -0.5."""
    words = re.findall(r"\w+|[^\w\s]", text.lower())
    trigrams = list(zip(words, words[1:], words[2:], strict=False))
    if not trigrams:
        return 0.0
    return -min(0.5, (len(trigrams) - len(set(trigrams))) / len(trigrams))


def answer_reward(text: str, answer: str | None) -> float:
    """Return 1 if the text after any thinking is exactly the answer, else 0."""
    return float(answer is not None and answer_part(text) == answer.strip())
