"""DPO and reward models next to TRL's trainers, from TRL's own batch of pairs to the gradient of every weight."""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from transformers import Qwen3ForSequenceClassification

from tests.oracles.agreement import Agreement, compare
from tests.oracles.policy_cases import nudged
from tests.oracles.trl_trainers import dpo_trainer, reward_trainer
from tests.trainers.tiny import tiny_qwen3
from trainers.logps import selective_log_softmax

PROMPTS = ([5, 6, 7], [8], [9, 10, 11, 12])
CHOSEN = ([13, 14, 2], [15, 16, 17, 18, 2], [19, 2])
REJECTED = ([20, 2], [21, 22, 23, 2], [4, 3, 5, 6, 2])


def dpo_case(*, beta: float, apart: float) -> Agreement:
    """Return the agreement on three pairs, with a reference that is ``apart`` from the policy."""
    from trainers.dpo import dpo_loss

    policy = tiny_qwen3()
    reference, mine = nudged(policy, by=apart), copy.deepcopy(policy)
    trainer = dpo_trainer(policy, copy.deepcopy(reference), beta=beta)
    pairs = zip(PROMPTS, CHOSEN, REJECTED, strict=True)
    batch = trainer.data_collator(
        [{"prompt_ids": prompt, "chosen_ids": chosen, "rejected_ids": rejected} for prompt, chosen, rejected in pairs]
    )
    with torch.no_grad():
        ref_logps = completion_sums(reference, batch).chunk(2)
    ours = dpo_loss(*completion_sums(mine, batch).chunk(2), *ref_logps, beta=beta).mean()
    theirs = trainer.compute_loss(policy, batch)
    return compare(ours, dict(mine.named_parameters()), theirs, dict(policy.named_parameters()))


def completion_sums(model: Any, batch: dict[str, Tensor]) -> Tensor:
    """Return the log-probability of each row's completion, the chosen ones first, [2B]."""
    logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
    logps = selective_log_softmax(logits[:, :-1], batch["input_ids"][:, 1:])
    return (logps * batch["completion_mask"][:, 1:]).sum(-1)


def reward_case() -> Agreement:
    """Return the agreement on three pairs of whole conversations."""
    from trainers.reward import bradley_terry_loss

    torch.manual_seed(0)
    config = tiny_qwen3().config
    config.num_labels, config.pad_token_id = 1, 0
    model = Qwen3ForSequenceClassification(config)
    mine = copy.deepcopy(model)
    trainer = reward_trainer(model)
    batch = trainer.data_collator(
        [
            {"chosen_ids": prompt + chosen, "rejected_ids": prompt + rejected}
            for prompt, chosen, rejected in zip(PROMPTS, CHOSEN, REJECTED, strict=True)
        ]
    )
    ours = bradley_terry_loss(*mine(**batch).logits.squeeze(-1).chunk(2)).mean()
    theirs = trainer.compute_loss(model, dict(batch))
    return compare(ours, dict(mine.named_parameters()), theirs, dict(model.named_parameters()))


CASES: dict[str, Callable[[], Agreement]] = {
    "DPO, beta 0.1": partial(dpo_case, beta=0.1, apart=0.02),
    "DPO, beta 0.5, reference far away": partial(dpo_case, beta=0.5, apart=0.1),
    "DPO, policy is reference": partial(dpo_case, beta=0.1, apart=0.0),
    "reward model (Bradley-Terry)": reward_case,
}
