"""The types that learn from their own completions, and what those are rewarded for."""

import math
from typing import TYPE_CHECKING, ClassVar

from pydantic import ValidationInfo, field_validator

from trainers import fields as f
from trainers.configs.base import DataFormat, SizedConfig
from trainers.paths import DEFAULT_REWARD_MODEL

RHO_MIN = {"global": 0.5, "prompt": 0.875}  # the script's, and the paper's recipe's
REWARD_FUNCTIONS = ("length", "thinking", "repetition", "reward_model", "answer")


class RolloutConfig(SizedConfig):
    """What every type has that learns from its own completions."""

    data_format: ClassVar[DataFormat] = "prompts"

    batch_size: f.BatchSize = 2
    log_interval: f.LogInterval = 1
    save_interval: f.SaveInterval = 10
    max_seq_len: f.PromptLen = 66
    data_path: f.DataPath = "../dataset/rlaif-mini.jsonl"
    max_gen_len: f.MaxGenLen = 1536
    temperature: f.Temperature = 0.8
    thinking_ratio: f.ThinkingRatio = 0.0
    sample_interval: f.SampleInterval = 10
    reward_weights: f.RewardWeights = None
    eval_temperature: f.EvalTemperature = 1.0

    if TYPE_CHECKING:  # each type declares them, to stand in the seeds' order among its own
        save_weight: f.SaveWeight
        learning_rate: f.LearningRate
        reasoning: f.Reasoning
        reward_model_path: f.RewardModelPath

    @field_validator("reward_weights")
    @classmethod
    def weights_name_rewards(cls, text: str | None) -> str | None:
        if text is not None and not any(parse_reward_weights(text).values()):
            raise ValueError("at least one weight must not be 0")
        return text

    def starting_weights(self) -> str | None:
        return "reason" if self.reasoning else "full_sft"


class PPOConfig(RolloutConfig):
    """Proximal policy optimization: token-level advantages from a critic that learns the value of each prefix."""

    type_name: ClassVar[str] = "ppo"
    title: ClassVar[str] = "RL - PPO"
    short_title: ClassVar[str] = "PPO"
    paper: ClassVar[str] = "PPO, arXiv 1707.06347; GAE, arXiv 1506.02438"

    save_weight: f.SaveWeight = "ppo_actor"
    learning_rate: f.LearningRate = 8e-8
    critic_learning_rate: f.CriticLearningRate = 8e-8
    clip_epsilon: f.ClipEpsilon = 0.1
    vf_coef: f.VfCoef = 0.5
    kl_coef: f.KlCoef = 0.02
    reasoning: f.Reasoning = True
    update_old_actor_freq: f.UpdateOldActorFreq = 4
    reward_model_path: f.RewardModelPath = DEFAULT_REWARD_MODEL
    gamma: f.Gamma = 1.0
    lam: f.Lam = 0.95
    cliprange_value: f.CliprangeValue = 0.2
    ppo_update_iters: f.PPOUpdateIters = 2
    early_stop_kl: f.EarlyStopKl = 0.25
    mini_batch_size: f.MiniBatchSize = 2


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

    def display_title(self) -> str:
        return "GRPO (CISPO)" if self.loss_type == "cispo" else self.short_title


class SPOConfig(RolloutConfig):
    """Single-stream policy optimization: one completion per prompt, compared with a running estimate of its value."""

    type_name: ClassVar[str] = "spo"
    title: ClassVar[str] = "RL - SPO"
    short_title: ClassVar[str] = "SPO"
    paper: ClassVar[str] = "SPO, arXiv 2509.13232"

    save_weight: f.SaveWeight = "spo"
    learning_rate: f.LearningRate = 1e-7
    accumulation_steps: f.AccumulationSteps = 4
    beta: f.Beta = 0.02
    reasoning: f.Reasoning = True
    reward_model_path: f.RewardModelPath = DEFAULT_REWARD_MODEL
    value_tracker: f.ValueTracker = "global"
    rho_min: f.RhoMin = None
    rho_max: f.RhoMax = 0.96
    kl_half: f.KlHalf = 0.06
    offline_samples: f.OfflineSamples = 8
    epsilon: f.Epsilon = 0.2
    num_iterations: f.NumIterations = 1

    @field_validator("rho_max")
    @classmethod
    def rho_max_is_above_rho_min(cls, rho_max: float, info: ValidationInfo) -> float:
        rho_min = info.data.get("rho_min") or RHO_MIN.get(info.data.get("value_tracker", ""), 0.0)
        if rho_max < rho_min:
            raise ValueError(f"must be at least rho_min {rho_min:g}")
        return rho_max

    def smallest_memory(self) -> float:
        """Return ``rho_min``, or what the tracker has without it."""
        return self.rho_min or RHO_MIN[self.value_tracker]


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
