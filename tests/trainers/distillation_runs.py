"""Start small distillations: ten rows in batches of four make three optimizer steps an epoch.

The teacher lies in ``runs/start/model``, where the fixture ``start`` writes it; the student is half as wide.
"""

from trainers.attempt import run_attempt
from trainers.cli import parse_command

FLAGS = {
    "from_student_weight": "none",
    "teacher_path": "runs/start/model",
    "data_path": "runs/data.jsonl",
    "save_dir": "runs/out",
    "student_hidden_size": 16,
    "student_num_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "batch_size": 4,
    "epochs": 2,
    "learning_rate": 0.01,
    "lr_schedule": "constant",
    "log_interval": 1,
    "dtype": "float32",
}


def argv(run_dir: str, **flags: object) -> list[str]:
    """Return the command line of a small distillation; ``None`` leaves a flag out."""
    pairs = {"run_dir": run_dir, "device": "cpu", **FLAGS, **flags}
    set_flags = {name: value for name, value in pairs.items() if value is not None}
    return ["distillation", *(part for name, value in set_flags.items() for part in (f"--{name}", str(value)))]


def run_distillation(run_dir: str, **flags: object) -> int:
    """Run it in this process and return its exit code."""
    return run_attempt(parse_command(argv(run_dir, **flags)))
