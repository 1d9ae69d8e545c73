"""Start small SFT runs: ten rows in batches of four make three optimizer steps an epoch."""

from trainers.attempt import run_attempt
from trainers.cli import parse_command

FLAGS = {
    "from_weight": "none",
    "data_path": "runs/data.jsonl",
    "save_dir": "runs/out",
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "batch_size": 4,
    "epochs": 2,
    "learning_rate": 0.01,
    "log_interval": 1,
    "dtype": "float32",
}


def argv(run_dir: str, **flags: object) -> list[str]:
    """Return the command line of a small run."""
    pairs = {"run_dir": run_dir, "device": "cpu", **FLAGS, **flags}
    return ["sft", *(part for name, value in pairs.items() for part in (f"--{name}", str(value)))]


def run_sft(run_dir: str, **flags: object) -> int:
    """Run it in this process and return its exit code."""
    return run_attempt(parse_command(argv(run_dir, **flags)))
