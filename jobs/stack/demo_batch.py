"""The demo: a model of under a million parameters learns sums from nothing (SFT), then from its own answers (GRPO)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from jobs.models import Batch, Job
from jobs.services.submission import Submission
from jobs.services.submit import submit_job

ACCURACY = "eval/greedy_accuracy"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What a demo must show: that a job's held-out accuracy ends so many points above another's."""

    job: Job
    over: Job
    points: float  # of 100
    learned: str  # a sentence's beginning; how many points follows

    def gain(self, jobs: Sequence[Job]) -> float | None:
        """Return the points between the two ends as ``jobs`` now stand, if both were measured."""
        ended = {job.pk: (job.result.get("eval_after") or {}).get(ACCURACY) for job in jobs}
        after, before = ended.get(self.job.pk), ended.get(self.over.pk)
        return None if after is None or before is None else 100 * (after - before)


@dataclass(frozen=True)
class Demo:
    """The jobs of a demo, in the order in which they are queued, and what they must show."""

    jobs: list[Job]
    claims: list[Claim]


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
def submit_demo(owner: User) -> Demo:
    """Queue the demo's two jobs through the service that the admin uses; the second starts from the first's weights."""
    batch = Batch.objects.create(name="Demo: sums", owner=owner)
    sft = submit_job(Submission(training_type="sft", params=SFT, owner=owner, batch=batch, name="sums"))
    grpo = submit_from(sft, "grpo", GRPO)
    return Demo([sft, grpo], [Claim(job=grpo, over=sft, points=20, learned="GRPO raised held-out accuracy by")])


def submit_from(parent: Job, training_type: str, params: dict[str, Any]) -> Job:
    """Queue a job of the same batch that waits for ``parent`` and starts from its weights."""
    return submit_job(
        Submission(
            training_type=training_type,
            params=params,
            owner=parent.owner,
            batch=parent.batch,
            name="sums",
            start_from=Job.StartFrom.JOB,
            depends_on=parent,
        )
    )
