"""PPO's loss of the actor next to that of TRL's GRPO trainer, which takes an advantage per token as well.

This TRL has no PPO: GAE and the loss of the critic have no oracle here, only their worked values.
"""

import copy
from collections.abc import Callable
from functools import partial

import torch

from tests.oracles.agreement import Agreement, compare
from tests.oracles.policy_cases import LENGTHS, G, drifted, nudged, replaying_trainer, score, scored_by_trl
from tests.trainers.tiny import tiny_qwen3
from trainers.configs import GRPOConfig
from trainers.policy_loss import clipped_loss, per_token_kl

EPSILON, KL_COEF = 0.1, 0.02


def actor_case(*, drift: float) -> Agreement:
    """Return the agreement on clipped ratios and KL, averaged over the tokens of the batch."""
    policy = tiny_qwen3()
    reference, mine = nudged(policy), copy.deepcopy(policy)
    trainer = replaying_trainer(policy, reference, LENGTHS, loss_type="bnpo", epsilon=EPSILON, beta=KL_COEF)
    inputs, config = scored_by_trl(trainer), GRPOConfig(num_generations=G, temperature=1.0)
    mask = inputs["completion_mask"]  # [N, T]
    inputs["advantages"] = torch.randn(mask.shape, generator=torch.Generator().manual_seed(6))
    inputs["old_per_token_logps"] = old = drifted(mine, inputs, config, drift)
    with torch.no_grad():
        ref_per_token_logps = score(reference, inputs, config).per_token_logps
    per_token_logps = score(mine, inputs, config).per_token_logps
    per_token_loss = clipped_loss(per_token_logps, old, inputs["advantages"], epsilon=EPSILON)
    per_token_loss = per_token_loss + KL_COEF * per_token_kl(per_token_logps, ref_per_token_logps)
    ours = (per_token_loss * mask).sum() / mask.sum()
    theirs = trainer._compute_loss(policy, inputs)
    return compare(ours, dict(mine.named_parameters()), theirs, dict(policy.named_parameters()))


CASES: dict[str, Callable[[], Agreement]] = {
    "PPO's actor, on-policy": partial(actor_case, drift=0.0),
    "PPO's actor, ratios that clip": partial(actor_case, drift=0.3),
}
