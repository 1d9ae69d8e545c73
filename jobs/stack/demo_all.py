"""The larger demo: from one SFT model on, by GRPO, SPO, PPO with a reward model, DPO, and into a smaller student."""

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from jobs.models import Batch, Job
from jobs.services.submission import Submission
from jobs.services.submit import submit_job
from jobs.stack.demo_batch import GRPO, MODEL, SFT, Claim, Demo, submit_from

# What is particular to an algorithm that learns from its own completions is not its data and its model.
OWN_COMPLETIONS: dict[str, Any] = {
    name: value for name, value in GRPO.items() if name not in ("num_generations", "beta", "save_weight")
}
SPO: dict[str, Any] = OWN_COMPLETIONS | {
    "save_weight": "demo_spo",
    "batch_size": 128,
    "accumulation_steps": 1,
    "learning_rate": 2e-4,
    "beta": 0,
    "epochs": 8,
    "max_steps": 200,
}
REWARD: dict[str, Any] = {name: value for name, value in MODEL.items() if name != "eval_data_path"} | {
    "save_weight": "demo_reward",
    "data_path": "../dataset/dpo-mini.jsonl",
    "eval_data_path": "../dataset/eval-pairs-mini.jsonl",
    "eval_size": 500,
    "batch_size": 32,
    "learning_rate": 1e-3,
    "lr_schedule": "cosine",
    "max_seq_len": 64,
    "epochs": 2,
    "log_interval": 10,
}
PPO: dict[str, Any] = OWN_COMPLETIONS | {
    "save_weight": "demo_ppo",
    "batch_size": 128,
    "mini_batch_size": 64,
    "update_old_actor_freq": 1,
    "critic_learning_rate": 3e-4,
    "clip_epsilon": 0.2,
    "kl_coef": 0,
    # The reward model prefers the better sum too seldom to be trusted with the whole reward.
    "reward_weights": "answer=1,reward_model=0.1,length=0,repetition=0,thinking=0",
    "max_steps": 160,
}
DPO: dict[str, Any] = MODEL | {
    "save_weight": "demo_dpo",
    "data_path": "../dataset/dpo-mini.jsonl",
    "batch_size": 32,
    "learning_rate": 1e-5,
    "max_seq_len": 64,
    "max_gen_len": 8,
    "max_steps": 120,
    "log_interval": 10,
}
LEARNING: dict[str, Any] = {
    "data_path": "../dataset/sft-mini.jsonl",
    "batch_size": 64,
    "learning_rate": 1e-3,
    "epochs": 20,
    "max_steps": 400,
    "max_seq_len": 64,
    "max_gen_len": 8,
    "log_interval": 10,
}
ALONE: dict[str, Any] = (
    MODEL | LEARNING | {"save_weight": "demo_alone", "from_weight": "none", "hidden_size": 64, "num_hidden_layers": 2}
)
TAUGHT: dict[str, Any] = (
    {name: value for name, value in MODEL.items() if name not in ("hidden_size", "num_hidden_layers")}
    | LEARNING
    | {
        "save_weight": "demo_taught",
        "from_student_weight": "none",
        "student_hidden_size": ALONE["hidden_size"],
        "student_num_layers": ALONE["num_hidden_layers"],
        "alpha": 0.5,
        "temperature": 1.0,  # at 2, with alpha 0.1, the student ended at 26 instead of 59 %
    }
)


@transaction.atomic
def submit_all(owner: User) -> Demo:
    """Queue a job of every kind as one batch; each starts from, scores with, or learns from the weights of another."""
    batch = Batch.objects.create(name="Demo: every training type", owner=owner)

    def submit(training_type: str, params: dict[str, Any], name: str, **asked: Any) -> Job:
        return submit_job(
            Submission(training_type=training_type, params=params, owner=owner, batch=batch, name=name, **asked)
        )

    sft = submit("sft", SFT, "sums")
    grpo = submit_from(sft, "grpo", GRPO)
    spo = submit_from(sft, "spo", SPO)
    reward = submit_from(sft, "reward", REWARD)
    scored = PPO | {"init_path": f"{sft.run_dir}/model", "reward_model_path": f"{reward.run_dir}/model"}
    ppo = submit("ppo", scored, "sums", start_from=Job.StartFrom.FOLDER, depends_on=reward)
    dpo = submit_from(sft, "dpo", DPO)
    alone = submit("sft", ALONE, "student alone")
    taught = submit("distillation", TAUGHT | {"teacher_path": f"{grpo.run_dir}/model"}, "student", depends_on=grpo)
    return Demo(
        [sft, grpo, spo, reward, ppo, dpo, alone, taught],
        [
            Claim(job=grpo, over=sft, points=20, learned="GRPO raised held-out accuracy by"),
            Claim(job=spo, over=sft, points=10, learned="SPO raised held-out accuracy by"),
            Claim(job=ppo, over=sft, points=10, learned="PPO raised held-out accuracy by"),
        ],
    )
