"""The configurations that every installation has from its first migration, for every training type."""

from dataclasses import dataclass, field
from typing import Any

from django.db import models

from trainers.configs import TRAINING_TYPES

# One folder for all smoke tests, so that the other types find the weights that the SFT one makes.
_TINY: dict[str, Any] = {
    "save_dir": "../out/smoke",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "max_steps": 5,
    "log_interval": 1,
    "save_interval": 5,
    "num_workers": 0,
}
_SMOKE_TESTS: dict[str, dict[str, Any]] = {
    "pretrain": {"data_path": "../dataset/pretrain-mini.jsonl", "batch_size": 4, "accumulation_steps": 2},
    "sft": {"from_weight": "none", "data_path": "../dataset/sft-mini.jsonl", "batch_size": 8, "learning_rate": 1e-3},
    "lora": {"data_path": "../dataset/sft-mini.jsonl", "batch_size": 8, "learning_rate": 1e-2},
    "dpo": {"data_path": "../dataset/dpo-mini.jsonl", "batch_size": 8, "learning_rate": 1e-3},
    "reward": {"data_path": "../dataset/dpo-mini.jsonl", "batch_size": 8, "learning_rate": 1e-3},
    "ppo": {
        "data_path": "../dataset/rlaif-mini.jsonl",
        "batch_size": 4,
        "max_gen_len": 16,
        "reasoning": False,
        "reward_model_path": "none",
    },
    "grpo": {
        "data_path": "../dataset/rlaif-mini.jsonl",
        "num_generations": 4,
        "max_gen_len": 16,
        "reasoning": False,
        "reward_model_path": "none",
    },
    "spo": {
        "data_path": "../dataset/rlaif-mini.jsonl",
        "batch_size": 4,
        "max_gen_len": 16,
        "reasoning": False,
        "reward_model_path": "none",
    },
    "distillation": {
        "data_path": "../dataset/sft-mini.jsonl",
        "batch_size": 8,
        "learning_rate": 1e-3,
        "student_hidden_size": 32,
        "student_num_layers": 2,
        "from_student_weight": "none",
        "teacher_hidden_size": 64,
        "teacher_num_layers": 2,
    },
}
_NEEDS_SFT = (
    "Starts from full_sft_64.pth in ../out/smoke, which the CPU smoke test of SFT makes: queue that one first, or "
    "choose it in Start from."
)
_NEEDS_TEACHER = (
    "Its teacher is full_sft_64.pth in ../out/smoke, which the CPU smoke test of SFT makes: queue that one first, or "
    "name a model folder in Teacher's folder."
)
_NEEDS = {"pretrain": "", "sft": "", "distillation": _NEEDS_TEACHER}  # any other type: _NEEDS_SFT
_REASONING: dict[str, Any] = {
    "save_weight": "reason",
    "epochs": 1,
    "batch_size": 8,
    "learning_rate": 1e-6,
    "save_interval": 100,
    "max_seq_len": 720,
    "data_path": "../dataset/r1_mix_1024.jsonl",
    "from_weight": "dpo",
}


@dataclass(frozen=True, kw_only=True)
class Builtin:
    """One configuration that ships: only what differs from the defaults, so that it follows them."""

    training_type: str
    name: str
    note: str
    params: dict[str, Any] = field(default_factory=dict)


def builtin_configs() -> list[Builtin]:
    """Return the script defaults and the smoke test of every training type, and what else a script was."""
    return [
        *(
            Builtin(training_type=name, name="Script defaults", note="The defaults of the MiniMind scripts.")
            for name in TRAINING_TYPES
        ),
        *(_smoke_test(name) for name in TRAINING_TYPES if name in _SMOKE_TESTS),
        Builtin(
            training_type="sft",
            name="Reasoning",
            note="What train_reason.py did: makes the reason weights that GRPO, SPO and PPO start from.",
            params=_REASONING,
        ),
    ]


def ensure_builtin_configs(training_config: type[models.Model]) -> None:
    """Write the configurations that ship; a migration calls this when a training type has come."""
    for builtin in builtin_configs():
        training_config._default_manager.update_or_create(
            training_type=builtin.training_type,
            name=builtin.name,
            owner=None,
            defaults={"builtin": True, "note": builtin.note, "params": builtin.params},
        )


def _smoke_test(training_type: str) -> Builtin:
    note = "Five steps of a tiny model on the data that ships, in seconds on a CPU."
    known = TRAINING_TYPES[training_type].model_fields
    tiny = {name: value for name, value in _TINY.items() if name in known}  # distillation names its sizes itself
    return Builtin(
        training_type=training_type,
        name="CPU smoke test",
        note=f"{note} {_NEEDS.get(training_type, _NEEDS_SFT)}".rstrip(),
        params=tiny | _SMOKE_TESTS[training_type],
    )
