"""Start small pretraining runs: ten texts in batches of four make three optimizer steps an epoch."""

import json
from pathlib import Path

from tests.trainers import sft_runs
from trainers.attempt import run_attempt
from trainers.cli import parse_command

TEXTS = [
    "the cat sat on the mat",
    "a dog ran",
    "rain falls on the roof at night",
    "two and two are four",
    "ice melts",
    "the sun rises in the east",
    "birds sing",
    "salt dissolves in water",
    "a ship sails over the sea",
    "wood burns",
]
FLAGS = {"data_path": "runs/texts.jsonl", "accumulation_steps": 1}


def argv(run_dir: str, **flags: object) -> list[str]:
    """Return the command line of a small run."""
    return ["pretrain", *sft_runs.argv(run_dir, **{**FLAGS, **flags})[1:]]


def run_pretrain(run_dir: str, **flags: object) -> int:
    """Run it in this process and return its exit code."""
    return run_attempt(parse_command(argv(run_dir, **flags)))


def write_texts(path: Path, texts: list[str]) -> None:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
