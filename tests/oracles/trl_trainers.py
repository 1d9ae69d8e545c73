"""TRL's own trainers around tiny models, built by their own ``__init__``; only the sampled completions are replayed."""

import tempfile
from collections.abc import Callable
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoTokenizer, PreTrainedModel
from trl import DPOConfig, DPOTrainer, GRPOConfig, GRPOTrainer, RewardConfig, RewardTrainer, SFTConfig, SFTTrainer
from trl.trainer.distillation_config import DistillationConfig
from trl.trainer.distillation_trainer import DistillationTrainer

from tests.trainers.grpo_runs import TOKENIZER

SCRATCH = tempfile.TemporaryDirectory()  # TRL makes a folder even where it writes nothing; gone at the end
SETTINGS: dict[str, Any] = {
    "output_dir": SCRATCH.name,
    "use_cpu": True,
    "bf16": False,
    "report_to": [],
    "activation_checkpointing": False,
    "disable_tqdm": True,
}
PAIR = Dataset.from_list([{"prompt": "1+1=", "chosen": "2", "rejected": "3"}])


def grpo_trainer(
    policy: PreTrainedModel, reference: PreTrainedModel, rollout_func: Callable[..., dict[str, Any]], **settings: Any
) -> GRPOTrainer:
    """Return TRL's GRPO trainer; it reads its reference from a folder, as it does in use."""
    with tempfile.TemporaryDirectory() as folder:
        reference.save_pretrained(folder)
        policy.config._name_or_path = folder
        trainer = GRPOTrainer(
            model=policy,
            reward_funcs=recorded_rewards,
            args=GRPOConfig(**SETTINGS, gradient_accumulation_steps=1, **settings),
            train_dataset=Dataset.from_list([{"prompt": "1+1="}]),
            processing_class=tokenizer(),
            rollout_func=rollout_func,
        )
    return ready(trainer)


def recorded_rewards(completions: list[str], recorded: list[float], **_: Any) -> list[float]:
    return recorded


def dpo_trainer(policy: PreTrainedModel, reference: PreTrainedModel, **settings: Any) -> DPOTrainer:
    """Return TRL's DPO trainer."""
    args = DPOConfig(**SETTINGS, **settings)
    return ready(
        DPOTrainer(model=policy, ref_model=reference, args=args, train_dataset=PAIR, processing_class=tokenizer())
    )


def reward_trainer(model: PreTrainedModel, **settings: Any) -> RewardTrainer:
    """Return TRL's trainer of reward models."""
    args = RewardConfig(**SETTINGS, **settings)
    return ready(RewardTrainer(model=model, args=args, train_dataset=PAIR, processing_class=tokenizer()))


def sft_trainer(model: PreTrainedModel, **settings: Any) -> SFTTrainer:
    """Return TRL's supervised fine-tuning."""
    rows = Dataset.from_list([{"prompt": "1+1=", "completion": "2"}])
    args = SFTConfig(**SETTINGS, **settings)
    return ready(SFTTrainer(model=model, args=args, train_dataset=rows, processing_class=tokenizer()))


def distillation_trainer(student: PreTrainedModel, teacher: PreTrainedModel, **settings: Any) -> DistillationTrainer:
    """Return TRL's distillation, which may have a temperature."""
    return ready(
        DistillationTrainer(
            model=student,
            teacher_model=teacher,
            args=DistillationConfig(**SETTINGS, **settings),
            train_dataset=Dataset.from_list([{"prompt": "1+1="}]),
            processing_class=tokenizer(),
        )
    )


def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(TOKENIZER)


def ready(trainer: Any) -> Any:
    """Return ``trainer`` in the state in which its training loop computes a loss."""
    trainer.current_gradient_accumulation_steps = 1
    trainer.model.train()
    torch.manual_seed(0)
    return trainer
