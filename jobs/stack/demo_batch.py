"""The demo: a model of under a million parameters learns sums from nothing (SFT), then from its own answers (GRPO)."""

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from jobs.models import Batch, Job
from jobs.services.submit import Submission, submit_job

ACCURACY = "eval/greedy_accuracy"
REQUIRED_GAIN = 0.20  # of held-out prompts, from the SFT job's end to the GRPO job's end

MODEL: dict[str, Any] = {
    "hidden_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "tokenizer_path": "../dataset/tokenizer",
    "eval_data_path": "../dataset/eval-mini.jsonl",
    "eval_size": 1000,
    "lr_schedule": "constant",
    "num_workers": 0,
}
# How fast SFT learns moves with the seed: it stops at an accuracy, not after so many steps.
SFT: dict[str, Any] = MODEL | {
    "save_weight": "demo_sft",
    "from_weight": "none",
    "data_path": "../dataset/sft-mini.jsonl",
    "batch_size": 64,
    "learning_rate": 1e-3,
    "epochs": 20,
    "max_steps": 1200,
    "max_seq_len": 64,
    "max_gen_len": 8,
    "log_interval": 10,
    "eval_interval": 25,
    "stop_at": "eval/sampled_accuracy>=0.25",
}
GRPO: dict[str, Any] = MODEL | {
    "save_weight": "demo_grpo",
    "data_path": "../dataset/rlaif-mini.jsonl",
    "batch_size": 16,
    "num_generations": 8,
    "learning_rate": 1e-4,
    "lr_schedule": "cosine",  # held constant, the last evaluations go up and down by some five points
    "beta": 0,
    "reasoning": False,
    "reward_model_path": "none",
    "reward_weights": "answer=1,length=0,repetition=0,thinking=0",
    "temperature": 1.0,
    "max_steps": 400,
    "max_gen_len": 8,
    "log_interval": 10,
    "save_interval": 50,
    "eval_interval": 200,
}


@transaction.atomic
def submit_demo(owner: User) -> list[Job]:
    """Queue the demo's two jobs through the service that the admin uses; the second starts from the first's weights."""
    batch = Batch.objects.create(name="Demo: sums", owner=owner)
    sft = submit_job(Submission(training_type="sft", params=SFT, owner=owner, batch=batch, name="sums"))
    grpo = submit_job(
        Submission(
            training_type="grpo",
            params=GRPO,
            owner=owner,
            batch=batch,
            name="sums",
            start_from=Job.StartFrom.JOB,
            depends_on=sft,
        )
    )
    return [sft, grpo]


def gain(jobs: Sequence[Job]) -> float | None:
    """Return by how much greedy accuracy rose from the first job's end to the last job's, if both measured it."""
    before, after = ((job.result.get("eval_after") or {}).get(ACCURACY) for job in (jobs[0], jobs[-1]))
    return None if before is None or after is None else after - before
