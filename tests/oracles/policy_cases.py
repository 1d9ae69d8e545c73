"""GRPO and CISPO next to TRL's GRPO trainer, from recorded completions and rewards to the gradient of every weight.

TRL differs where the settings below say so: its standard deviation is the sample's, CISPO is averaged over all tokens
(the same on completions of one length), and by default the KL estimate is multiplied by the ratio.
"""

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from tests.oracles.agreement import Agreement, compare, compare_tensors
from tests.oracles.trl_trainers import grpo_trainer
from tests.trainers.tiny import VOCAB, tiny_moe, tiny_qwen3
from trainers.configs import GRPOConfig
from trainers.grpo import group_advantages, policy_loss
from trainers.logps import CompletionLogps, grouped_logps
from trainers.policy_loss import clipped_tokens, per_token_kl, sequence_mean

G = 4
PROMPTS = ([5, 6, 7], [8, 9, 10, 11, 12])  # the shorter is padded on the left
LENGTHS = (5, 1, 3, 4, 2, 5, 5, 3)
EQUAL = (4,) * 8
REWARDS = (1.0, 0.0, 0.25, -0.5, 2.0, 2.5, -1.0, 0.5)
SHARED = {"loss_type": "grpo", "beta": 0.0, "temperature": 1.0, "epsilon": 0.2}  # names that both sides have
CISPO = {"loss_type": "cispo", "epsilon_high": 5.0}


def loss_case(
    *,
    lengths: Sequence[int] = LENGTHS,
    build: Callable[[], PreTrainedModel] = tiny_qwen3,
    drift: float = 0.0,
    ours: dict[str, Any] | None = None,
    **settings: Any,
) -> Agreement:
    """Return the agreement on one micro-batch of two groups, given TRL's advantages.

    Args:
        lengths: Tokens of each completion.
        build: Makes the policy.
        drift: Standard deviation of the noise between the policy's log-probabilities and those that sampled.
        ours: What our settings have different from TRL's.
        settings: Hyper-parameters of both sides.
    """
    policy = build()
    reference, mine = nudged(policy), copy.deepcopy(policy)
    trainer = replaying_trainer(policy, reference, lengths, **settings)
    inputs = scored_by_trl(trainer)
    config = GRPOConfig(num_generations=G, **SHARED | settings | (ours or {}))
    inputs["old_per_token_logps"] = drifted(mine, inputs, config, drift)
    return compare(
        our_loss(mine, reference, inputs, config),
        dict(mine.named_parameters()),
        trainer._compute_loss(policy, inputs),
        dict(policy.named_parameters()),
    )


def our_loss(policy: Any, reference: Any, inputs: dict[str, Tensor], config: GRPOConfig) -> Tensor:
    """Return the loss as ``trainers.grpo.train`` puts it together."""
    scored = score(policy, inputs, config)
    kl = torch.zeros_like(scored.per_token_logps)  # [N, T]
    if config.beta:
        with torch.no_grad():
            ref_per_token_logps = score(reference, inputs, config).per_token_logps
        kl = per_token_kl(scored.per_token_logps, ref_per_token_logps)
    per_token_loss = policy_loss(scored.per_token_logps, inputs["old_per_token_logps"], inputs["advantages"], config)
    return sequence_mean(per_token_loss + config.beta * kl, inputs["completion_mask"]).mean() + scored.aux_loss


def score(model: Any, inputs: dict[str, Tensor], config: GRPOConfig) -> CompletionLogps:
    """Return our log-probabilities of TRL's batch."""
    return grouped_logps(
        model,
        torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], dim=1),
        torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], dim=1),
        inputs["completion_ids"].shape[1],
        config.temperature,
        num_generations=G,
    )


@torch.no_grad()
def drifted(model: Any, inputs: dict[str, Tensor], config: GRPOConfig, drift: float) -> Tensor:
    """Return log-probabilities of a policy that is off by ``drift``, [N, T]."""
    logps = score(model, inputs, config).per_token_logps
    return logps + drift * torch.randn(logps.shape, generator=torch.Generator().manual_seed(1))


def advantages_case(*, scale_rewards: str) -> Agreement:
    """Return the agreement on advantages, ours brought to TRL's scale by the known factor."""
    policy = tiny_qwen3()
    theirs = scored_by_trl(replaying_trainer(policy, policy, LENGTHS, scale_rewards=scale_rewards))["advantages"]
    rewards = torch.tensor(REWARDS)
    population = rewards.view(-1, G).std(1, unbiased=False) + 1e-4  # [B]
    sample = rewards.view(-1, G).std(1, unbiased=True) + 1e-4
    factor = population if scale_rewards == "none" else population / sample
    return compare_tensors(group_advantages(rewards, G) * factor.repeat_interleave(G), theirs)


def metrics_of(**settings: Any) -> dict[str, tuple[float, float]]:
    """Return KL, entropy and clipped share of one micro-batch: ours, and what TRL logs."""
    policy = tiny_qwen3()
    reference, mine = nudged(policy), copy.deepcopy(policy)
    trainer = replaying_trainer(policy, reference, LENGTHS, **settings)
    inputs, config = scored_by_trl(trainer), GRPOConfig(num_generations=G, **SHARED | settings)
    inputs["old_per_token_logps"] = old = drifted(mine, inputs, config, 0.3)
    trainer._compute_loss(policy, inputs)
    with torch.no_grad():
        scored, at_reference = score(mine, inputs, config), score(reference, inputs, config)
    logps, mask = scored.per_token_logps, inputs["completion_mask"]
    ours = {
        "kl": per_token_kl(logps, at_reference.per_token_logps),
        "entropy": scored.entropy,
        "clip_ratio/region_mean": clipped_tokens(logps, old, inputs["advantages"][:, None], epsilon=config.epsilon),
    }
    return {
        name: (((values * mask).sum() / mask.sum()).item(), trainer._metrics["train"][name][-1])
        for name, values in ours.items()
    }


def replaying_trainer(
    policy: PreTrainedModel, reference: PreTrainedModel, lengths: Sequence[int], **settings: Any
) -> Any:
    """Return TRL's trainer, which replays completions of these lengths instead of sampling."""
    chance = torch.Generator().manual_seed(0)
    replayed = {
        "prompt_ids": [list(prompt) for prompt in PROMPTS for _ in range(G)],
        "completion_ids": [torch.randint(3, VOCAB, (length,), generator=chance).tolist() for length in lengths],
        "logprobs": None,
    }
    return grpo_trainer(
        policy,
        reference,
        lambda *_: dict(replayed),
        per_device_train_batch_size=len(lengths),
        num_generations=G,
        use_bias_correction_kl=False,
        **SHARED | settings,
    )


def scored_by_trl(trainer: Any) -> dict[str, Any]:
    """Return what TRL makes of the replayed completions: masks, advantages, the reference's log-probabilities."""
    inputs: dict[str, Any] = trainer._generate_and_score_completions(
        [{"prompt": "1+1=", "recorded": reward} for reward in REWARDS]
    )
    return inputs


def nudged(model: PreTrainedModel, *, by: float = 0.01) -> PreTrainedModel:
    """Return a copy with noise on every weight: a reference that is near, as in training."""
    copied = copy.deepcopy(model)
    chance = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for weight in copied.parameters():
            weight.add_(by * torch.randn(weight.shape, generator=chance))
    return copied


CASES: dict[str, Callable[[], Agreement]] = {
    "GRPO, on-policy": loss_case,
    "GRPO, ratios that clip": partial(loss_case, drift=0.3),
    "GRPO, k3 KL": partial(loss_case, beta=0.04),
    "GRPO, all of it at temperature 0.8": partial(loss_case, beta=0.04, drift=0.3, temperature=0.8),
    "GRPO, mixture of experts": partial(loss_case, build=tiny_moe, drift=0.3),
    "CISPO, on-policy": partial(loss_case, lengths=EQUAL, **CISPO),
    "CISPO, weights that are capped, k3 KL": partial(loss_case, lengths=EQUAL, drift=2.0, beta=0.04, **CISPO),
    "GRPO advantages, unscaled": partial(advantages_case, scale_rewards="none"),
    "GRPO advantages, scaled": partial(advantages_case, scale_rewards="group"),
}
