"""Which jobs take equally long, told by their parameters alone."""

import hashlib
import json
from typing import Any

from jobs.models import Job
from jobs.services.submission import Submission
from trainers.configs import TrainConfig

# What changes no duration. A parameter that is not named here counts, so a new one does.
# fmt: off
WITHOUT_EFFECT = frozenset((
    "save_dir", "save_weight", "from_resume", "log_interval", "train_project", "seed", "learning_rate",
    "critic_learning_rate", "lr_schedule", "warmup_steps", "weight_decay", "grad_clip", "loss_type", "epsilon",
    "epsilon_high", "clip_epsilon", "cliprange_value", "vf_coef", "gamma", "lam", "rho_min", "rho_max", "kl_half",
    "reward_weights", "lora_name", "lora_alpha", "alpha",
))
# fmt: on
ZERO_OR_NOT = frozenset(("beta", "kl_coef"))  # at 0 no reference is computed
NUMBER_OF_STEPS = frozenset(("epochs", "max_steps", "stop_at"))
SIZE = ("hidden_size", "num_hidden_layers", "use_moe", "num_attention_heads", "num_key_value_heads")


def duration_keys(config: TrainConfig, asked: Job | Submission) -> dict[str, str]:
    """Return a job's ``cost_key`` (it takes as long as) and ``pace_key`` (its steps take as long as).

    Of another job's weights that it starts from the size counts, not whose they are.
    """
    told = {name: value for name, value in config.model_dump(mode="json").items() if name not in WITHOUT_EFFECT}
    told |= {name: bool(told[name]) for name in ZERO_OR_NOT & set(told)}
    told |= {"training_type": config.type_name, "device_count": asked.device_count}
    if asked.start_from == Job.StartFrom.JOB and asked.depends_on is not None:
        told["init_path"] = _weights(asked.depends_on)
    paced = {name: value for name, value in told.items() if name not in NUMBER_OF_STEPS}
    return {"cost_key": _digest(told), "pace_key": _digest(paced)}


def _weights(job: Job) -> Any:
    """Return the size of a job's weights as its parameters name it, or the folder that it started from."""
    while job.start_from == Job.StartFrom.JOB and job.depends_on is not None:
        job = job.depends_on
    return job.params.get("init_path") or [job.params.get(name) for name in SIZE]


def _digest(told: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
