"""What every training type has, and the size of a model. Imports no torch."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator

from trainers import fields as f

DataFormat = Literal["text", "conversations", "pairs", "prompts", "answered"]
ANSWER_METRICS = ("eval/greedy_accuracy", "eval/sampled_accuracy", "eval/completion_length")


@dataclass(frozen=True)
class ModelSize:
    """The size of a model that the scripts can name."""

    hidden_size: int
    num_hidden_layers: int
    use_moe: bool
    num_attention_heads: int
    num_key_value_heads: int


class TrainConfig(BaseModel):
    """What every training type has."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    type_name: ClassVar[str]
    title: ClassVar[str]
    short_title: ClassVar[str]
    paper: ClassVar[str] = ""
    data_format: ClassVar[DataFormat] = "conversations"
    eval_format: ClassVar[DataFormat] = "answered"
    eval_metrics: ClassVar[tuple[str, ...]] = ANSWER_METRICS
    fixed: ClassVar[tuple[str, ...]] = ()  # parameters that give the weights of a checkpoint their meaning

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
    max_seq_len: f.MaxSeqLen
    data_path: f.DataPath
    strict: f.Strict = False
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
        if metric not in cls.eval_metrics:
            raise ValueError(f"unknown metric {metric}; known: {', '.join(cls.eval_metrics)}")
        if not math.isfinite(bound):
            raise ValueError("needs a finite number")
        return stop_at

    def display_title(self) -> str:
        """Return the name that lists show."""
        return self.short_title

    def model_size(self) -> ModelSize:
        """Return the size of the model that is trained."""
        raise NotImplementedError

    def starting_weights(self) -> str | None:
        """Return the name of the weights that the script's own rule starts from; ``None`` for a fresh model."""
        return None

    def weight_folders(self) -> tuple[str, ...]:
        """Return the folders in which those weights are looked for, the first that has them wins."""
        return (self.save_dir,)

    def replaced(self, **changes: Any) -> Self:
        """Return a copy with ``changes``, validated again."""
        return type(self).model_validate(self.model_dump() | changes)


class SizedConfig(TrainConfig):
    """What every type has that trains one model of a size."""

    hidden_size: f.HiddenSize = 512
    num_hidden_layers: f.NumHiddenLayers = 8
    use_moe: f.UseMoe = False
    num_attention_heads: f.NumAttentionHeads = 8
    num_key_value_heads: f.NumKeyValueHeads = 4

    @field_validator("num_attention_heads")
    @classmethod
    def heads_fit(cls, heads: int, info: ValidationInfo) -> int:
        return heads_divide("hidden_size", heads, info)

    @field_validator("num_key_value_heads")
    @classmethod
    def key_value_heads_fit(cls, key_value_heads: int, info: ValidationInfo) -> int:
        return key_value_heads_divide(key_value_heads, info)

    def model_size(self) -> ModelSize:
        return ModelSize(
            self.hidden_size, self.num_hidden_layers, self.use_moe, self.num_attention_heads, self.num_key_value_heads
        )


def heads_divide(size: str, heads: int, info: ValidationInfo) -> int:
    """Return ``heads``; ValueError when the parameter ``size`` is no even multiple of it."""
    hidden = info.data.get(size)
    if hidden is not None and (hidden % heads or (hidden // heads) % 2):
        raise ValueError(f"{size} {hidden} must be an even multiple of num_attention_heads {heads}")
    return heads


def key_value_heads_divide(key_value_heads: int, info: ValidationInfo) -> int:
    """Return ``key_value_heads``; ValueError when the attention heads are no multiple of it."""
    heads = info.data.get("num_attention_heads")
    if heads is not None and heads % key_value_heads:
        raise ValueError(f"num_attention_heads {heads} must be a multiple of num_key_value_heads {key_value_heads}")
    return key_value_heads


def stop_at_parts(text: str) -> tuple[str, str, float]:
    """Split ``eval/sampled_accuracy>=0.35`` into metric, ``>=`` or ``<=``, and number.

    Raises:
        ValueError: it has another form.
    """
    relation = ">=" if ">=" in text else "<="
    metric, _, bound = text.partition(relation)
    return metric, relation, float(bound)
