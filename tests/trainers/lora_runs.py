"""Start small LoRA runs on random weights: ten rows in batches of four make three optimizer steps an epoch."""

from tests.trainers import sft_runs
from trainers.attempt import run_attempt
from trainers.cli import parse_command

FLAGS = {"init_path": "runs/start/model", "max_seq_len": 64, "lora_rank": 4, "lora_alpha": 8.0}


def argv(run_dir: str, **flags: object) -> list[str]:
    """Return the command line of a small run; a flag that is ``None`` is left out."""
    given = {name: value for name, value in {**FLAGS, **flags}.items() if value is not None}
    return ["lora", *sft_runs.argv(run_dir, **given)[1:]]


def run_lora(run_dir: str, **flags: object) -> int:
    """Run it in this process and return its exit code."""
    return run_attempt(parse_command(argv(run_dir, **flags)))
