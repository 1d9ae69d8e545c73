"""A mixture of experts trains in every type, with its balance in the loss, and one type's weights start the next."""

import json
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from tests.trainers.conftest import SUMS
from tests.trainers.grpo_runs import TOKENIZER, metrics_of
from trainers.attempt import run_attempt
from trainers.cli import parse_command
from trainers.configs import TRAINING_TYPES, ModelSize, SFTConfig
from trainers.exports import publish, save_model
from trainers.models import fresh_model, load_weights

FLAGS = {
    "device": "cpu",
    "dtype": "float32",
    "save_dir": "runs/out",
    "max_steps": 2,
    "log_interval": 1,
    "max_seq_len": 64,
    "max_gen_len": 6,
    "batch_size": 2,
    "mini_batch_size": 2,
    "accumulation_steps": 1,
    "num_generations": 2,
    "offline_samples": 1,
    "learning_rate": 1e-3,
    "critic_learning_rate": 1e-3,
    "reasoning": 0,
    "reward_model_path": "none",
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    **dict.fromkeys(("hidden_size", "student_hidden_size", "teacher_hidden_size"), 32),
    **dict.fromkeys(("num_hidden_layers", "student_num_layers", "teacher_num_layers"), 2),
}
EXPERTS = ("use_moe", "student_use_moe", "teacher_use_moe")
FROM = ("from_weight", "from_student_weight", "from_teacher_weight")
DATA = {"text": "runs/texts.jsonl", "pairs": "runs/pairs.jsonl"}  # the others read conversations
UNPUBLISHED = {"reward"}  # its head is not the scripts'


@pytest.fixture
def data(home: Path) -> Path:
    """Return a state folder with rows of every format."""
    turns = [({"role": "user", "content": asked}, {"role": "assistant", "content": told}) for asked, told in SUMS]
    wrong = {"role": "assistant", "content": "no"}
    rows = {
        "texts": [{"text": f"{asked} = {told}"} for asked, told in SUMS],
        "pairs": [{"chosen": [user, right], "rejected": [user, wrong]} for user, right in turns],
    }
    for name, lines in rows.items():
        (home / "runs" / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return home / "runs"


def run(type_name: str, run_dir: str, **flags: object) -> int:
    """Run two steps in this process, with the flags that the type knows, and return the exit code."""
    config = TRAINING_TYPES[type_name]
    path = DATA.get(config.data_format, "runs/data.jsonl")
    known = {name: value for name, value in FLAGS.items() if name in config.model_fields or name == "device"}
    pairs = {"run_dir": run_dir, "data_path": path, **known, **flags}
    argv = [part for name, value in pairs.items() for part in (f"--{name}", str(value))]
    return run_attempt(parse_command([type_name, *argv]))


def known_to(type_name: str, names: tuple[str, ...], value: object) -> dict[str, object]:
    """Return those flags of ``names`` that a type has, all with ``value``."""
    return {name: value for name in names if name in TRAINING_TYPES[type_name].model_fields}


@pytest.mark.parametrize("type_name", TRAINING_TYPES)
def test_the_balance_of_the_experts_is_part_of_every_loss(data, type_name):
    """The same weights with the balance weighted 0 and 1: the first loss differs by it, 1 when experts share evenly."""
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    model = fresh_model(ModelSize(32, 2, True, 4, 2), tokenizer)
    losses = {}
    for weight in (0.0, 1.0):
        model.config.router_aux_loss_coef = weight
        save_model(model, tokenizer, data / f"start{weight:.0f}")
        start = {"init_path": f"runs/start{weight:.0f}"}
        if type_name == "distillation":
            start["teacher_path"] = "runs/start0"
        assert run(type_name, f"runs/{weight:.0f}", **start) == 0
        losses[weight] = metrics_of(data / f"{weight:.0f}")[0][1]["loss"]
    assert 0.9 < losses[1.0] - losses[0.0] < 4.0


@pytest.mark.parametrize("use_moe", [0, 1])
def test_the_published_weights_of_every_type_start_the_next(data, use_moe):
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    size, suffix = ModelSize(32, 2, bool(use_moe), 4, 2), "_moe" if use_moe else ""
    publish(fresh_model(size, tokenizer), SFTConfig(save_dir="runs/out", save_weight="full_sft"))
    for type_name in TRAINING_TYPES:
        before = (data / "out" / f"full_sft_32{suffix}.pth").read_bytes()
        start = known_to(type_name, EXPERTS, use_moe) | known_to(type_name, FROM, "full_sft")
        assert run(type_name, f"runs/{type_name}", **start, save_weight="full_sft") == 0
        published = json.loads((data / type_name / "result.json").read_text())["published"]
        if type_name in UNPUBLISHED:
            assert published is None
            continue
        assert published == f"runs/out/full_sft_32{suffix}.pth"
        assert (data / "out" / f"full_sft_32{suffix}.pth").read_bytes() != before, type_name
        load_weights(data / "out" / f"full_sft_32{suffix}.pth", size)
