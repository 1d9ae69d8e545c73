"""Start small runs on preference pairs: ten of them in batches of four make three optimizer steps an epoch."""

import json
from pathlib import Path

from transformers import AutoTokenizer

from tests.trainers.grpo_runs import TOKENIZER
from trainers.attempt import run_attempt
from trainers.cli import parse_command

FLAGS = {
    "init_path": "runs/start/model",
    "data_path": "runs/pairs.jsonl",
    "save_dir": "runs/out",
    "batch_size": 4,
    "epochs": 2,
    "max_seq_len": 64,
    "learning_rate": 0.003,
    "lr_schedule": "constant",
    "log_interval": 1,
    "dtype": "float32",
}
FRESH_MOE = {  # in place of the weights to start from
    "init_path": None,
    "from_weight": "none",
    "use_moe": 1,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
ANSWERED = [
    ("07+38", "045", "046"),
    ("12+30", "042", "142"),
    ("99+01", "100", "000"),
    ("20+05", "025", "035"),
    ("41+17", "058", "057"),
    ("63+36", "099", "199"),
    ("08+08", "016", "026"),
    ("50+49", "099", "098"),
    ("11+22", "033", "133"),
    ("70+15", "085", "084"),
]
TOO_LONG = ("9+" * 60, "1", "2")  # its question alone has more than 64 tokens


def argv(kind: str, run_dir: str, **flags: object) -> list[str]:
    """Return the command line of a small run; a flag that is None is left out."""
    pairs = {"run_dir": run_dir, "device": "cpu", **FLAGS, **flags}
    return [kind, *(part for name, value in pairs.items() if value is not None for part in (f"--{name}", str(value)))]


def run_pairs(kind: str, run_dir: str, **flags: object) -> int:
    """Run it in this process and return its exit code."""
    return run_attempt(parse_command(argv(kind, run_dir, **flags)))


def write_pairs(path: Path, pairs: list[tuple[str, str, str]]) -> None:
    """Write (question, chosen answer, rejected answer) as rows."""
    rows = [{"chosen": conversation(asked, good), "rejected": conversation(asked, bad)} for asked, good, bad in pairs]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def conversation(question: str, answer: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]


def share_pad_with_eos(folder: Path) -> None:
    """Give the model in ``folder`` a tokenizer that pads with its end token, and a template that ends with it."""
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    tokenizer.pad_token = tokenizer.eos_token
    tokenizer.chat_template = (
        "{% for turn in messages %}{{ turn.role }}: {{ turn.content }}{{ eos_token }}{% endfor %}"
        "{% if add_generation_prompt %}assistant: {% endif %}"
    )
    tokenizer.save_pretrained(folder)
