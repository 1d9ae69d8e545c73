"""DPO and reward models next to TRL's trainers, from TRL's own batch of pairs to the gradient of every weight."""

import copy
from collections.abc import Callable
from functools import partial

import torch
from transformers import PreTrainedModel, Qwen3ForSequenceClassification

from tests.oracles.agreement import Agreement, compare
from tests.oracles.policy_cases import nudged
from tests.oracles.trl_trainers import dpo_trainer, reward_trainer
from tests.trainers.tiny import tiny_moe, tiny_qwen3
from trainers.dpo import completion_sums, dpo_loss
from trainers.models import moe_loss, moe_options
from trainers.reward import bradley_terry_loss
from trainers.scorer import score_conversations

PROMPTS = ([5, 6, 7], [8], [9, 10, 11, 12])
CHOSEN = ([13, 14, 2], [15, 16, 17, 18, 2], [19, 2])
REJECTED = ([20, 2], [21, 22, 23, 2], [4, 3, 5, 6, 2])


def dpo_case(*, build: Callable[[], PreTrainedModel] = tiny_qwen3, beta: float = 0.1, apart: float = 0.02) -> Agreement:
    """Return the agreement on three pairs, with a reference that is ``apart`` from the policy."""
    policy = build()
    reference, mine = nudged(policy, by=apart), copy.deepcopy(policy)
    trainer = dpo_trainer(policy, copy.deepcopy(reference), beta=beta)
    pairs = zip(PROMPTS, CHOSEN, REJECTED, strict=True)
    batch = trainer.data_collator(
        [{"prompt_ids": prompt, "chosen_ids": chosen, "rejected_ids": rejected} for prompt, chosen, rejected in pairs]
    )
    inputs = {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"]}
    labels = batch["input_ids"].masked_fill(batch["completion_mask"] == 0, -100)
    outputs = mine(**inputs, **moe_options(mine))
    with torch.no_grad():
        ref_logps = completion_sums(reference(**inputs).logits, labels).chunk(2)
    losses = dpo_loss(*completion_sums(outputs.logits, labels).chunk(2), *ref_logps, beta=beta)
    ours = losses.mean() + moe_loss(mine, outputs)
    return compare(
        ours, dict(mine.named_parameters()), trainer.compute_loss(policy, batch), dict(policy.named_parameters())
    )


def reward_case() -> Agreement:
    """Return the agreement on three pairs of whole conversations."""
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
    ours = bradley_terry_loss(
        *score_conversations(mine, batch["input_ids"], batch["attention_mask"])[0].chunk(2)
    ).mean()
    theirs = trainer.compute_loss(model, dict(batch))
    return compare(ours, dict(mine.named_parameters()), theirs, dict(model.named_parameters()))


CASES: dict[str, Callable[[], Agreement]] = {
    "DPO, beta 0.1": dpo_case,
    "DPO, beta 0.5, reference far away": partial(dpo_case, beta=0.5, apart=0.1),
    "DPO, policy is reference": partial(dpo_case, apart=0.0),
    "DPO, mixture of experts": partial(dpo_case, build=tiny_moe),
    "reward model (Bradley-Terry)": reward_case,
}
