"""The type that trains one model on another's distribution, and so has two sizes."""

from typing import ClassVar

from pydantic import ValidationInfo, field_validator

from trainers import fields as f
from trainers.configs.base import ModelSize, TrainConfig, heads_divide, key_value_heads_divide


class DistillationConfig(TrainConfig):
    """Distillation: a student learns the labels and a frozen teacher's distribution over the tokens at them."""

    type_name: ClassVar[str] = "distillation"
    title: ClassVar[str] = "Distillation"
    short_title: ClassVar[str] = "Distillation"
    paper: ClassVar[str] = "Distilling the knowledge in a neural network, arXiv 1503.02531"

    save_weight: f.SaveWeight = "full_dist"
    epochs: f.Epochs = 6
    batch_size: f.BatchSize = 32
    learning_rate: f.LearningRate = 5e-6
    log_interval: f.LogInterval = 100
    save_interval: f.SaveInterval = 100
    max_seq_len: f.MaxSeqLen = 340
    data_path: f.DataPath = "../dataset/sft_mini_512.jsonl"
    student_hidden_size: f.StudentHiddenSize = 512
    student_num_layers: f.StudentNumLayers = 8
    teacher_hidden_size: f.TeacherHiddenSize = 768
    teacher_num_layers: f.TeacherNumLayers = 16
    student_use_moe: f.StudentUseMoe = False
    teacher_use_moe: f.TeacherUseMoe = False
    num_attention_heads: f.NumAttentionHeads = 8
    num_key_value_heads: f.NumKeyValueHeads = 4
    from_student_weight: f.FromStudentWeight = "full_sft"
    from_teacher_weight: f.FromTeacherWeight = "full_sft"
    teacher_path: f.TeacherPath = None
    alpha: f.DistillationAlpha = 0.5
    temperature: f.DistillationTemperature = 1.5
    max_gen_len: f.AnswerLen = 64
    eval_temperature: f.EvalTemperature = 1.0

    @field_validator("num_attention_heads")
    @classmethod
    def heads_fit(cls, heads: int, info: ValidationInfo) -> int:
        heads_divide("student_hidden_size", heads, info)
        return heads_divide("teacher_hidden_size", heads, info)

    @field_validator("num_key_value_heads")
    @classmethod
    def key_value_heads_fit(cls, key_value_heads: int, info: ValidationInfo) -> int:
        return key_value_heads_divide(key_value_heads, info)

    @field_validator("from_teacher_weight")
    @classmethod
    def teacher_is_trained(cls, name: str) -> str:
        if name == "none":
            raise ValueError("a teacher needs weights; name them, or its folder with teacher_path")
        return name

    def model_size(self) -> ModelSize:
        return ModelSize(
            self.student_hidden_size,
            self.student_num_layers,
            self.student_use_moe,
            self.num_attention_heads,
            self.num_key_value_heads,
        )

    def teacher_size(self) -> ModelSize:
        """Return the size of the model that is learned from, unless ``teacher_path`` brings its own."""
        return ModelSize(
            self.teacher_hidden_size,
            self.teacher_num_layers,
            self.teacher_use_moe,
            self.num_attention_heads,
            self.num_key_value_heads,
        )

    def starting_weights(self) -> str | None:
        return None if self.from_student_weight == "none" else self.from_student_weight
