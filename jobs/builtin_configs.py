"""The configurations that every installation has from its first migration, for every training type."""

from dataclasses import dataclass, field
from typing import Any

from django.db import models

from trainers.configs import TRAINING_TYPES

# One folder for all smoke tests, so that the RL types find the weights that the SFT one makes.
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
    "sft": {"from_weight": "none", "data_path": "../dataset/sft-mini.jsonl", "batch_size": 8, "learning_rate": 1e-3},
    "grpo": {
        "data_path": "../dataset/rlaif-mini.jsonl",
        "num_generations": 4,
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


@dataclass(frozen=True, kw_only=True)
class Builtin:
    """One configuration that ships: only what differs from the defaults, so that it follows them."""

    training_type: str
    name: str
    note: str
    params: dict[str, Any] = field(default_factory=dict)


def builtin_configs() -> list[Builtin]:
    """Return the script defaults and the smoke test of every training type."""
    found = []
    for name, config in TRAINING_TYPES.items():
        found.append(Builtin(training_type=name, name="Script defaults", note="The defaults of the MiniMind scripts."))
        if name in _SMOKE_TESTS:
            note = "Five steps of a tiny model on the data that ships, in seconds on a CPU."
            found.append(
                Builtin(
                    training_type=name,
                    name="CPU smoke test",
                    note=note
                    if name == "sft"
                    else f"{note} {_NEEDS_TEACHER if name == 'distillation' else _NEEDS_SFT}",
                    params={key: value for key, value in _TINY.items() if key in config.model_fields}
                    | _SMOKE_TESTS[name],
                )
            )
    return found


def ensure_builtin_configs(training_config: type[models.Model]) -> None:
    """Write the configurations that ship; a migration calls this when a training type has come."""
    for builtin in builtin_configs():
        training_config._default_manager.update_or_create(
            training_type=builtin.training_type,
            name=builtin.name,
            owner=None,
            defaults={"builtin": True, "note": builtin.note, "params": builtin.params},
        )
