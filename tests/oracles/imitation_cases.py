"""SFT and distillation next to TRL's, and the log-probabilities and entropy that every algorithm is built on."""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel
from trl.trainer import utils as trl_utils

from tests.oracles.agreement import Agreement, compare, compare_tensors
from tests.oracles.trl_trainers import distillation_trainer, sft_trainer
from tests.trainers.tiny import VOCAB, tiny_moe, tiny_qwen3
from trainers.distillation import distillation_loss
from trainers.logps import entropy_of, selective_log_softmax
from trainers.models import moe_loss, moe_options
from trainers.supervised import label_loss

TOKENS_OF_THE_STEP = 29  # of which this micro-batch holds some
PROMPT, COMPLETION = 4, 5  # tokens


def sft_case(*, build: Callable[[], PreTrainedModel] = tiny_qwen3) -> Agreement:
    """Return the agreement on one of an optimizer step's micro-batches."""
    model = build()
    mine, batch = copy.deepcopy(model), labelled_batch()
    trainer = sft_trainer(model)
    theirs = trainer.compute_loss(model, dict(batch), num_items_in_batch=torch.tensor(TOKENS_OF_THE_STEP))
    outputs = mine(batch["input_ids"], attention_mask=batch["attention_mask"], **moe_options(mine))
    ours = label_loss(outputs.logits, batch["labels"], num_label_tokens=TOKENS_OF_THE_STEP) + moe_loss(mine, outputs)
    return compare(ours, dict(mine.named_parameters()), theirs, dict(model.named_parameters()))


def distillation_case(*, temperature: float) -> Agreement:
    """Return the agreement on forward KL between models of two sizes; TRL lacks the factor T^2."""
    student, teacher = tiny_qwen3(), tiny_qwen3(seed=1, num_hidden_layers=3)
    mine, batch = copy.deepcopy(student), labelled_batch()
    trainer = distillation_trainer(student, teacher, beta=0.0, temperature=temperature)
    theirs, _, _ = trainer._compute_loss(student, split_batch(batch), TOKENS_OF_THE_STEP)
    masks = {"attention_mask": batch["attention_mask"]}
    ours = distillation_loss(
        mine(batch["input_ids"], **masks).logits,
        teacher(batch["input_ids"], **masks).logits.detach(),
        batch["labels"],
        temperature=temperature,
        num_label_tokens=TOKENS_OF_THE_STEP,
    )
    return compare(ours, dict(mine.named_parameters()), theirs * temperature**2, dict(student.named_parameters()))


def gkd_case(*, temperature: float) -> Agreement:
    """Return the agreement on forward KL between given logits, with GKD's loss."""
    from trl.experimental.gkd import GKDTrainer  # warns that it is experimental

    labels = labelled_batch()["labels"]
    torch.manual_seed(3)
    student = (3 * torch.randn(*labels.shape, VOCAB)).requires_grad_()
    teacher = 3 * torch.randn(*labels.shape, VOCAB)
    theirs = GKDTrainer.generalized_jsd_loss(
        student[:, :-1],
        teacher[:, :-1],
        labels[:, 1:],
        beta=0,
        temperature=temperature,
        num_items_in_batch=TOKENS_OF_THE_STEP,
    )
    ours = distillation_loss(student, teacher, labels, temperature=temperature, num_label_tokens=TOKENS_OF_THE_STEP)
    leaf = {"student_logits": student}
    return compare(ours, leaf, theirs * temperature**2, leaf)


def log_softmax_case(*, temperature: float) -> Agreement:
    """Return the agreement on the log-probabilities of given tokens."""
    logits, ids = random_logits()
    theirs = trl_utils.selective_log_softmax(logits, ids, temperature=temperature)
    return compare_tensors(selective_log_softmax(logits / temperature, ids), theirs, logits)


def entropy_case() -> Agreement:
    """Return the agreement on entropy, a metric without gradient."""
    logits, _ = random_logits()
    return compare_tensors(entropy_of(logits), trl_utils.entropy_from_logits(logits))


def random_logits() -> tuple[Tensor, Tensor]:
    """Return logits [N, T, V] and ids [N, T]."""
    torch.manual_seed(4)
    return (5 * torch.randn(3, 4, VOCAB)).requires_grad_(), torch.randint(0, VOCAB, (3, 4))


def labelled_batch() -> dict[str, Tensor]:
    """Return prompts padded on the left and completions of several lengths, one without any token, [B, S] each."""
    torch.manual_seed(5)
    ids = torch.randint(3, VOCAB, (4, PROMPT + COMPLETION))
    mask = torch.ones_like(ids)
    for row, (left, right) in enumerate([(0, 0), (2, 1), (1, 3), (0, 5)]):
        mask[row, :left] = 0
        mask[row, PROMPT + COMPLETION - right :] = 0
    labels = ids.masked_fill(mask == 0, -100)
    labels[:, :PROMPT] = -100
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def split_batch(batch: dict[str, Tensor]) -> dict[str, Any]:
    """Return the same rows as TRL's distillation takes them: prompts and completions apart."""
    ids, mask = batch["input_ids"], batch["attention_mask"]
    return {
        "prompt_ids": ids[:, :PROMPT],
        "prompt_mask": mask[:, :PROMPT],
        "completion_ids": ids[:, PROMPT:],
        "completion_mask": mask[:, PROMPT:],
    }


CASES: dict[str, Callable[[], Agreement]] = {
    "SFT": sft_case,
    "SFT, mixture of experts": partial(sft_case, build=tiny_moe),
    "distillation, T = 1": partial(distillation_case, temperature=1.0),
    "distillation, T = 2": partial(distillation_case, temperature=2.0),
    "GKD with beta 0, T = 1": partial(gkd_case, temperature=1.0),
    "GKD with beta 0, T = 1.5": partial(gkd_case, temperature=1.5),
    "log-probabilities at temperature 0.7": partial(log_softmax_case, temperature=0.7),
    "entropy": entropy_case,
}
