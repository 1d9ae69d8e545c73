"""Every training parameter, declared once: forms, command line, validation and documentation come from these classes.

Imports no torch. Defaults are those of the MiniMind scripts where they have the flag. Empty means unset (``None``): the
flag is left out and the trainer's default applies; off is the literal ``none``.
"""

import math
from typing import Any, ClassVar, Self, get_args

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator
from pydantic.fields import FieldInfo

from trainers import fields as f
from trainers.fields import About, Group, PathKind
from trainers.paths import DEFAULT_REWARD_MODEL

__all__ = [
    "TRAINING_TYPES",
    "About",
    "GRPOConfig",
    "Group",
    "PathKind",
    "RolloutConfig",
    "SFTConfig",
    "TrainConfig",
    "about",
    "choices_of",
]

REWARD_FUNCTIONS = ("length", "thinking", "repetition", "reward_model", "answer")


class TrainConfig(BaseModel):
    """What every training type has."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    type_name: ClassVar[str]
    title: ClassVar[str]
    short_title: ClassVar[str]
    paper: ClassVar[str] = ""

    save_dir: f.SaveDir = "../out"
    save_weight: f.SaveWeight
    epochs: f.Epochs = 1
    batch_size: f.BatchSize
    learning_rate: f.LearningRate
    dtype: f.Dtype = "bfloat16"
    num_workers: f.NumWorkers = 8
    accumulation_steps: f.AccumulationSteps = 1
    grad_clip: f.GradClip = 1.0
    log_interval: f.LogInterval
    save_interval: f.SaveInterval
    hidden_size: f.HiddenSize = 512
    num_hidden_layers: f.NumHiddenLayers = 8
    use_moe: f.UseMoe = False
    num_attention_heads: f.NumAttentionHeads = 8
    num_key_value_heads: f.NumKeyValueHeads = 4
    max_seq_len: f.MaxSeqLen
    data_path: f.DataPath
    init_path: f.InitPath = None
    tokenizer_path: f.TokenizerPath = None
    from_resume: f.FromResume = False
    max_steps: f.MaxSteps = None
    seed: f.Seed = 42
    weight_decay: f.WeightDecay = 0.01
    lr_schedule: f.LrSchedule = "cosine"
    warmup_steps: f.WarmupSteps = 0
    eval_data_path: f.EvalDataPath = None
    eval_interval: f.EvalInterval = 0
    eval_size: f.EvalSize = 256
    eval_temperature: f.EvalTemperature = 1.0
    stop_at: f.StopAt = None
    train_monitor: f.TrainMonitor = "none"
    train_project: f.TrainProject = "nightshift"
    use_compile: f.UseCompile = False

    @field_validator("*", mode="after")
    @classmethod
    def refuse_option_like_text(cls, value: Any) -> Any:
        if isinstance(value, str):
            if value.startswith("-"):
                raise ValueError("must not begin with '-'")
            if not value.isprintable():
                raise ValueError("must not contain line breaks or control characters")
        return value

    @field_validator("num_attention_heads")
    @classmethod
    def heads_divide_hidden_size(cls, heads: int, info: ValidationInfo) -> int:
        hidden = info.data.get("hidden_size")
        if hidden is not None and (hidden % heads or (hidden // heads) % 2):
            raise ValueError(f"hidden_size {hidden} must be an even multiple of num_attention_heads {heads}")
        return heads

    @field_validator("num_key_value_heads")
    @classmethod
    def key_value_heads_divide_heads(cls, key_value_heads: int, info: ValidationInfo) -> int:
        heads = info.data.get("num_attention_heads")
        if heads is not None and heads % key_value_heads:
            raise ValueError(f"num_attention_heads {heads} must be a multiple of num_key_value_heads {key_value_heads}")
        return key_value_heads

    @field_validator("eval_interval")
    @classmethod
    def interval_needs_eval_data(cls, interval: int, info: ValidationInfo) -> int:
        if interval and info.data.get("eval_data_path") is None:
            raise ValueError("needs eval_data_path")
        return interval

    @field_validator("stop_at")
    @classmethod
    def stop_at_needs_evaluations(cls, stop_at: str | None, info: ValidationInfo) -> str | None:
        if stop_at is None:
            return None
        if not info.data.get("eval_interval"):
            raise ValueError("needs eval_data_path and an eval_interval above 0")
        metric, _, bound = stop_at_parts(stop_at)
        if metric not in EVAL_METRICS:
            raise ValueError(f"unknown metric {metric}; known: {', '.join(EVAL_METRICS)}")
        if not math.isfinite(bound):
            raise ValueError("needs a finite number")
        return stop_at

    def display_title(self) -> str:
        """Return the name that lists show."""
        return self.short_title

    def starting_weights(self) -> str | None:
        """Return the name of the weights that the script's own rule starts from; ``None`` for a fresh model."""
        return None

    def replaced(self, **changes: Any) -> Self:
        """Return a copy with ``changes``, validated again."""
        return type(self).model_validate(self.model_dump() | changes)


class SFTConfig(TrainConfig):
    """Supervised fine-tuning on conversations: cross-entropy on what the assistant says."""

    type_name: ClassVar[str] = "sft"
    title: ClassVar[str] = "SFT"
    short_title: ClassVar[str] = "SFT"

    save_weight: f.SaveWeight = "full_sft"
    epochs: f.Epochs = 2
    batch_size: f.BatchSize = 16
    learning_rate: f.LearningRate = 1e-6
    log_interval: f.LogInterval = 100
    save_interval: f.SaveInterval = 1000
    max_seq_len: f.MaxSeqLen = 340
    data_path: f.DataPath = "../dataset/sft_mini_512.jsonl"
    from_weight: f.FromWeight = "pretrain"
    max_gen_len: f.MaxGenLen = 64

    def starting_weights(self) -> str | None:
        return None if self.from_weight == "none" else self.from_weight


class RolloutConfig(TrainConfig):
    """What every type that learns from its own completions has."""

    batch_size: f.BatchSize = 2
    log_interval: f.LogInterval = 1
    save_interval: f.SaveInterval = 10
    max_seq_len: f.MaxSeqLen = 66
    data_path: f.DataPath = "../dataset/rlaif-mini.jsonl"
    max_gen_len: f.MaxGenLen = 1536
    temperature: f.Temperature = 0.8
    thinking_ratio: f.ThinkingRatio = 0.0
    sample_interval: f.SampleInterval = 10
    reward_weights: f.RewardWeights = None

    @field_validator("reward_weights")
    @classmethod
    def weights_name_rewards(cls, text: str | None) -> str | None:
        if text is not None and not any(parse_reward_weights(text).values()):
            raise ValueError("at least one weight must not be 0")
        return text


class GRPOConfig(RolloutConfig):
    """Group relative policy optimization, with the GRPO or the CISPO loss."""

    type_name: ClassVar[str] = "grpo"
    title: ClassVar[str] = "RL - GRPO"
    short_title: ClassVar[str] = "GRPO"
    paper: ClassVar[str] = "DeepSeekMath, arXiv 2402.03300; CISPO: MiniMax-M1, arXiv 2506.13585"

    save_weight: f.SaveWeight = "grpo"
    learning_rate: f.LearningRate = 8e-8
    beta: f.Beta = 0.02
    num_generations: f.NumGenerations = 8
    reasoning: f.Reasoning = True
    reward_model_path: f.RewardModelPath = DEFAULT_REWARD_MODEL
    loss_type: f.LossType = "grpo"
    epsilon: f.Epsilon = 0.2
    epsilon_high: f.EpsilonHigh = 5.0
    num_iterations: f.NumIterations = 1

    def starting_weights(self) -> str | None:
        return "reason" if self.reasoning else "full_sft"

    def display_title(self) -> str:
        return "GRPO (CISPO)" if self.loss_type == "cispo" else self.short_title


TRAINING_TYPES: dict[str, type[TrainConfig]] = {config.type_name: config for config in (SFTConfig, GRPOConfig)}
EVAL_METRICS = ("eval/greedy_accuracy", "eval/sampled_accuracy", "eval/completion_length")


def about(field: FieldInfo) -> About:
    """Return what a person is told of a parameter."""
    return next(item for item in field.metadata if isinstance(item, About))


def choices_of(field: FieldInfo) -> tuple[str, ...]:
    """Return the words a parameter may be, empty when it is not a choice."""
    return tuple(option for option in get_args(field.annotation) if isinstance(option, str))


def stop_at_parts(text: str) -> tuple[str, str, float]:
    """Split ``eval/sampled_accuracy>=0.35`` into metric, ``>=`` or ``<=``, and number.

    Raises:
        ValueError: it has another form.
    """
    relation = ">=" if ">=" in text else "<="
    metric, _, bound = text.partition(relation)
    return metric, relation, float(bound)


def parse_reward_weights(text: str | None) -> dict[str, float]:
    """Return the weight of every reward function; those that ``text`` does not name have 1.

    Raises:
        ValueError: an unknown name, or a weight that is no finite number.
    """
    weights = dict.fromkeys(REWARD_FUNCTIONS, 1.0)
    for part in filter(None, (text or "").split(",")):
        name, _, value = (piece.strip() for piece in part.partition("="))
        if name not in weights:
            raise ValueError(f"unknown reward {name!r}; known: {', '.join(REWARD_FUNCTIONS)}")
        try:
            weights[name] = float(value)
        except ValueError:
            raise ValueError(f"{name} needs a number, as in {name}=1") from None
        if not math.isfinite(weights[name]):
            raise ValueError(f"{name} needs a finite number")
    return weights
