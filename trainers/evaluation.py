"""Answers to held-out prompts, greedy and sampled, which leave the training's random state as it was."""

from collections.abc import Sequence
from typing import Any

import torch

from dataset.prompts import Prompt, PromptRows, prompt_ids
from trainers.configs import DistillationConfig, DPOConfig, LoRAConfig, RolloutConfig, SFTConfig
from trainers.errors import ConfigurationError
from trainers.paths import confine_path
from trainers.rewards import answer_reward
from trainers.rollout import Rollout, TorchRolloutEngine, completion_texts
from trainers.runtime import Run

ROWS_AT_ONCE = 512
RECORDED = 4  # prompts whose completions are kept per evaluation


Answer = tuple[str, int, bool]  # text, length in tokens, truncated
AnsweringConfig = SFTConfig | LoRAConfig | DPOConfig | RolloutConfig | DistillationConfig


def evaluate_answers(model: Any, tokenizer: Any, run: Run, config: AnsweringConfig) -> dict[str, float]:
    """Return ``eval/...`` values of the policy as it is; a few of its answers go into the samples.

    Raises:
        ConfigurationError: no row of the evaluation data has an answer.
    """
    asked = held_out_prompts(config, tokenizer)
    prompts = [prompt_ids(tokenizer, prompt.messages, config.max_seq_len) for prompt in asked]
    engine = TorchRolloutEngine(model, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id)
    devices = [run.device] if run.device.type == "cuda" else []
    with torch.random.fork_rng(devices), run.autocast():
        torch.manual_seed(config.seed + run.step)
        greedy = _answer(engine, tokenizer, prompts, max_gen_len=config.max_gen_len, temperature=0)
        sampled = _answer(
            engine, tokenizer, prompts, max_gen_len=config.max_gen_len, temperature=config.eval_temperature
        )
    for prompt, ids, answers in list(zip(asked, prompts, zip(greedy, sampled, strict=True), strict=True))[:RECORDED]:
        run.records.sample(
            {
                "step": run.step,
                "kind": "eval",
                "prompt": tokenizer.decode(ids),
                "answer": prompt.answer,
                "completions": [_described(prompt, *answer) for answer in answers],
            }
        )
    return {
        "eval/greedy_accuracy": accuracy(asked, greedy),
        "eval/sampled_accuracy": accuracy(asked, sampled),
        "eval/completion_length": sum(length for _, length, _ in greedy) / len(greedy),
    }


def held_out_prompts(config: AnsweringConfig, tokenizer: Any = None) -> list[Prompt]:
    """Return the first ``eval_size`` evaluation prompts; those without an answer are left out."""
    assert config.eval_data_path is not None
    rows = PromptRows(confine_path(config.eval_data_path), tokenizer, strict=config.strict)
    asked = [rows[index] for index in range(min(config.eval_size, len(rows)))]
    asked = [prompt for prompt in asked if prompt.answer is not None]
    if not asked:
        raise ConfigurationError(
            f"--eval_data_path {config.eval_data_path}: none of the first {config.eval_size} rows has an answer"
        )
    return asked


def accuracy(asked: Sequence[Prompt], answers: Sequence[Answer]) -> float:
    """Return the share of answers that are exactly right."""
    right = [answer_reward(text, prompt.answer) for prompt, (text, _, _) in zip(asked, answers, strict=True)]
    return sum(right) / len(right)


def _answer(
    engine: TorchRolloutEngine, tokenizer: Any, prompts: list[list[int]], *, max_gen_len: int, temperature: float
) -> list[Answer]:
    answers: list[Answer] = []
    for start in range(0, len(prompts), ROWS_AT_ONCE):
        rollout: Rollout = engine.rollout(
            prompts[start : start + ROWS_AT_ONCE], num_generations=1, max_gen_len=max_gen_len, temperature=temperature
        )
        answers += zip(
            completion_texts(rollout, tokenizer), rollout.lengths.tolist(), rollout.truncated.tolist(), strict=True
        )
    return answers


def _described(prompt: Prompt, text: str, length: int, truncated: bool) -> dict[str, Any]:
    reward = answer_reward(text, prompt.answer)
    return {
        "text": text,
        "rewards": {"answer": reward},
        "reward": reward,
        "advantage": None,
        "length": length,
        "truncated": truncated,
    }
