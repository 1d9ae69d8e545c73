"""Start small GRPO runs from random weights: ten prompts, two at a time, four completions each."""

import json
from pathlib import Path

import torch
from transformers import (
    AutoTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedModel,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

from trainers.attempt import run_attempt
from trainers.cli import parse_command
from trainers.paths import REPOSITORY
from trainers.records import read_rows

TOKENIZER = REPOSITORY / "dataset" / "tokenizer"
# Random weights write random text: whether it has 20 characters differs, which is a reward to learn from.
FLAGS = {
    "init_path": "runs/start/model",
    "data_path": "runs/data.jsonl",
    "save_dir": "runs/out",
    "reasoning": 0,
    "reward_model_path": "none",
    "reward_weights": "answer=0,repetition=0",
    "batch_size": 2,
    "num_generations": 4,
    "max_gen_len": 12,
    "temperature": 1.0,
    "learning_rate": 0.003,
    "lr_schedule": "constant",
    "dtype": "float32",
}
SIZES = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 512,
}


def run_grpo(run_dir: str, **flags: object) -> int:
    """Run it in this process and return its exit code."""
    pairs = {"run_dir": run_dir, "device": "cpu", **FLAGS, **flags}
    return run_attempt(
        parse_command(["grpo", *(part for name, value in pairs.items() for part in (f"--{name}", str(value)))])
    )


def save_start(home: Path, kind: str = "qwen3") -> None:
    """Write random weights of an architecture, with the tokenizer that ships, to ``runs/start/model``."""
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    folder = home / "runs" / "start" / "model"
    start_model(kind, len(tokenizer)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def start_model(kind: str, vocab_size: int) -> PreTrainedModel:
    torch.manual_seed(0)
    if kind == "gpt2":  # with its dropout of 0.1 and learned positions
        return GPT2LMHeadModel(GPT2Config(vocab_size=vocab_size, n_embd=32, n_layer=2, n_head=4, n_positions=128))
    if kind == "moe":
        return Qwen3MoeForCausalLM(
            Qwen3MoeConfig(
                vocab_size=vocab_size,
                moe_intermediate_size=64,
                num_experts=4,
                num_experts_per_tok=1,
                router_aux_loss_coef=0.01,
                tie_word_embeddings=True,
                **SIZES,
            )
        )
    return Qwen3ForCausalLM(Qwen3Config(vocab_size=vocab_size, tie_word_embeddings=True, **SIZES))


def metrics_of(folder: Path) -> list[tuple[int, dict[str, float]]]:
    return [
        (row["step"], {name: value for name, value in row["values"].items() if name != "step_time"})
        for row in read_rows(folder / "metrics.jsonl")
    ]


def state_of(folder: Path) -> dict:
    return torch.load(folder / "checkpoint" / "state.pt", weights_only=True)


def first_gradient(folder: Path) -> torch.Tensor:
    """Return the clipped gradient of a run of one step, from AdamW's first moment (0.1 of it)."""
    moments = state_of(folder)["optimizer"]["state"].values()
    return torch.cat([moment["exp_avg"].flatten() for moment in moments]) * 10


def write_prompts(path: Path, questions: list[str]) -> None:
    rows = [{"conversations": [{"role": "user", "content": question}]} for question in questions]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def same_weights(one: Path, other: Path) -> bool:
    first, second = state_of(one)["model"], state_of(other)["model"]
    return all(torch.equal(first[name], second[name]) for name in first)
