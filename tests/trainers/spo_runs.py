"""Start small SPO runs from random weights: ten prompts, four at a time in two micro-batches."""

from tests.trainers.grpo_runs import FLAGS as GRPO_FLAGS
from trainers.attempt import run_attempt
from trainers.cli import parse_command

FLAGS = {name: value for name, value in GRPO_FLAGS.items() if name != "num_generations"} | {
    "accumulation_steps": 2,
    "offline_samples": 2,
}


def argv(run_dir: str, **flags: object) -> list[str]:
    """Return the command line of a small run."""
    pairs = {"run_dir": run_dir, "device": "cpu", **FLAGS, **flags}
    return ["spo", *(part for name, value in pairs.items() for part in (f"--{name}", str(value)))]


def run_spo(run_dir: str, **flags: object) -> int:
    """Run it in this process and return its exit code."""
    return run_attempt(parse_command(argv(run_dir, **flags)))
