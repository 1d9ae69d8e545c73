"""The types that learn from written examples: text, conversations, preference pairs."""

from typing import ClassVar

from trainers import fields as f
from trainers.configs.base import DataFormat, SizedConfig


class SupervisedConfig(SizedConfig):
    """What every type has that learns from written examples and starts from weights that it names."""

    from_weight: f.FromWeight

    def starting_weights(self) -> str | None:
        return None if self.from_weight == "none" else self.from_weight


class PretrainConfig(SupervisedConfig):
    """Pretraining on plain text: cross-entropy on every token."""

    type_name: ClassVar[str] = "pretrain"
    title: ClassVar[str] = "Pretrain"
    short_title: ClassVar[str] = "Pretrain"
    data_format: ClassVar[DataFormat] = "text"
    eval_format: ClassVar[DataFormat] = "text"
    eval_metrics: ClassVar[tuple[str, ...]] = ("eval/loss", "eval/perplexity")

    save_weight: f.SaveWeight = "pretrain"
    epochs: f.Epochs = 1
    batch_size: f.BatchSize = 32
    learning_rate: f.LearningRate = 5e-4
    accumulation_steps: f.AccumulationSteps = 8
    log_interval: f.LogInterval = 100
    save_interval: f.SaveInterval = 1000
    max_seq_len: f.MaxSeqLen = 340
    data_path: f.DataPath = "../dataset/pretrain_hq.jsonl"
    eval_data_path: f.EvalTextPath = None
    from_weight: f.FromWeight = "none"


class SFTConfig(SupervisedConfig):
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
    max_gen_len: f.AnswerLen = 64
    eval_temperature: f.EvalTemperature = 1.0


class LoRAConfig(SupervisedConfig):
    """Supervised fine-tuning of low-rank adapters; the weights beneath them stay as they are."""

    type_name: ClassVar[str] = "lora"
    title: ClassVar[str] = "LoRA"
    short_title: ClassVar[str] = "LoRA"
    paper: ClassVar[str] = "LoRA, arXiv 2106.09685"
    fixed: ClassVar[tuple[str, ...]] = ("lora_alpha",)

    save_dir: f.SaveDir = "../out/lora"
    save_weight: f.SaveWeight = "lora_merged"
    epochs: f.Epochs = 50
    batch_size: f.BatchSize = 32
    learning_rate: f.LearningRate = 1e-4
    log_interval: f.LogInterval = 10
    save_interval: f.SaveInterval = 1000
    max_seq_len: f.MaxSeqLen = 340
    data_path: f.DataPath = "../dataset/lora_identity.jsonl"
    from_weight: f.FromWeight = "full_sft"
    lora_name: f.LoraName = "lora_identity"
    lora_rank: f.LoraRank = 8
    lora_alpha: f.LoraAlpha = 16.0
    max_gen_len: f.AnswerLen = 64
    eval_temperature: f.EvalTemperature = 1.0

    def weight_folders(self) -> tuple[str, ...]:
        return (self.save_dir, "../out")  # the script keeps adapters in a folder of their own beneath the weights'


class DPOConfig(SupervisedConfig):
    """Direct preference optimization: prefer chosen completions to rejected ones, more than the reference does."""

    type_name: ClassVar[str] = "dpo"
    title: ClassVar[str] = "RLHF - DPO"
    short_title: ClassVar[str] = "DPO"
    paper: ClassVar[str] = "DPO, arXiv 2305.18290"
    data_format: ClassVar[DataFormat] = "pairs"

    save_weight: f.SaveWeight = "dpo"
    batch_size: f.BatchSize = 4
    learning_rate: f.LearningRate = 4e-8
    log_interval: f.LogInterval = 100
    save_interval: f.SaveInterval = 100
    max_seq_len: f.MaxSeqLen = 1024
    data_path: f.DataPath = "../dataset/dpo.jsonl"
    from_weight: f.FromWeight = "full_sft"
    beta: f.DPOBeta = 0.1
    max_gen_len: f.AnswerLen = 64
    eval_temperature: f.EvalTemperature = 1.0


class RewardConfig(SupervisedConfig):
    """Reward model: score the chosen completion above the rejected one (Bradley-Terry)."""

    type_name: ClassVar[str] = "reward"
    title: ClassVar[str] = "RLHF - Reward model"
    short_title: ClassVar[str] = "Reward"
    paper: ClassVar[str] = "InstructGPT, arXiv 2203.02155"
    data_format: ClassVar[DataFormat] = "pairs"
    eval_format: ClassVar[DataFormat] = "pairs"
    eval_metrics: ClassVar[tuple[str, ...]] = ("eval/accuracy", "eval/margin")

    save_weight: f.SaveWeight = "reward"
    batch_size: f.BatchSize = 4
    learning_rate: f.LearningRate = 1e-5
    log_interval: f.LogInterval = 100
    save_interval: f.SaveInterval = 100
    max_seq_len: f.MaxSeqLen = 1024
    data_path: f.DataPath = "../dataset/dpo.jsonl"
    eval_data_path: f.EvalPairsPath = None
    from_weight: f.FromWeight = "full_sft"
