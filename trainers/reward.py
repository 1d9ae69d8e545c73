"""Reward model: score the chosen conversation of a pair above the rejected one.

    python -m trainers reward --init_path runs/1/model --data_path ../dataset/dpo-mini.jsonl

The loss is -log sigmoid of the difference of the two scores (Bradley-Terry), averaged over the pairs of a step. A score
is a linear function of the last token's state, so the starting weights lose their language head. Only differences are
learned: where zero lies says nothing. The run's model folder is what ``--reward_model_path`` takes. Pairs that
``max_seq_len`` cuts before the assistant speaks are left out.

Source: InstructGPT, arXiv 2203.02155, section 3.5.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from dataset.preferences import PreferenceRows
from trainers.batches import micro_batches, read_batches
from trainers.configs import RewardConfig
from trainers.errors import ConfigurationError
from trainers.experience import TokenSums
from trainers.models import check_positions
from trainers.optim import build_optimizer, finite_loss, learning_rate_at, optimizer_step
from trainers.pairs import collate_pairs, count_teaching_pairs, teaching_pairs, warn_of_cut_pairs
from trainers.paths import confine_path
from trainers.ranks import ALONE
from trainers.runtime import Outcome, Run
from trainers.schedule import Schedule
from trainers.scorer import load_scorer, score_conversations
from trainers.tokenizer import load_tokenizer

EVALUATED_AT_ONCE = 32  # pairs
SHOWN = {"loss": "loss", "accuracy": "accuracy", "margin": "margin", "learning_rate": "lr", "grad_norm": "grad_norm"}


def train(config: RewardConfig, run: Run) -> Outcome:
    """Train until the schedule or ``stop_at`` ends it."""
    tokenizer = load_tokenizer(config, kept=run.kept_model)
    model = load_scorer(config, tokenizer, kept=run.kept_model)
    # In eval mode throughout: two scores differ by what is said, not by dropout, and are those that are given later.
    model.to(run.device).eval()  # type: ignore[arg-type]  # transformers wraps torch's method
    check_positions(model, {"max_seq_len": config.max_seq_len})
    rows = PreferenceRows(confine_path(config.data_path), tokenizer, config.max_seq_len, strict=config.strict)
    run.tell_skipped(rows.skipped)
    score: Any = torch.compile(score_conversations) if config.use_compile else score_conversations
    optimizer = build_optimizer(model, config)
    run.resume(Schedule.of(config, rows=len(rows), ranks=run.ranks), model=model, optimizer=optimizer)
    run.keep_model(model, tokenizer)
    batches = read_batches(rows, run.schedule, after_step=run.step, num_workers=config.num_workers)
    evaluate = partial(evaluate_pairs, model, tokenizer, run, config)

    while not run.target_reached(evaluate) and run.step < run.total_steps:
        run.begin_step()

        # 1. Batch: the pairs of one optimizer step, in micro-batches padded to their own longest row
        parts = [
            collate_pairs(part, tokenizer.pad_token_id) for part in micro_batches(next(batches), config.batch_size)
        ]
        num_pairs = int(run.ranks.sum(count_teaching_pairs(parts)))
        num_parts = run.ranks.sum(len(parts))
        num_tokens = run.count("num_tokens", sum(int(part["attention_mask"].sum()) for part in parts))
        warn_of_cut_pairs(parts, config.max_seq_len, run)

        # 2. Loss and gradients: each micro-batch's part of the mean over all pairs
        total_loss = torch.zeros((), device=run.device)
        sums = TokenSums()
        for part in parts:
            batch = {name: tensor.to(run.device) for name, tensor in part.items()}  # [2B, S] each
            teaches = teaching_pairs(batch["labels"])  # [B]
            with run.autocast():
                scores, aux_loss = score(model, batch["input_ids"], batch["attention_mask"])
            chosen_rewards, rejected_rewards = scores.chunk(2)  # [B] each
            losses = bradley_terry_loss(chosen_rewards, rejected_rewards)
            loss = (losses * teaches).sum() / max(num_pairs, 1)
            loss = loss + aux_loss / num_parts
            run.scaler.scale(loss).backward()
            total_loss += loss.detach()
            sums.add(teaches, **comparison(chosen_rewards, rejected_rewards))

        # 3. Optimizer step
        mean_loss = finite_loss(run.ranks.sum(total_loss), step=run.step)
        learning_rate = learning_rate_at(run.step, run.total_steps, config)
        grad_norm = optimizer_step(
            optimizer,
            learning_rate=learning_rate,
            grad_clip=config.grad_clip,
            scaler=run.scaler,
            ranks=run.ranks,
            step=run.step,
        )

        # 4. Log
        if run.log_due():
            run.report(
                {
                    "loss": mean_loss,
                    **sums.values(run.ranks),
                    "learning_rate": learning_rate,
                    "grad_norm": grad_norm,
                    "num_tokens": num_tokens,
                },
                shown=SHOWN,
            )

        # 5. Save, and end here when asked to
        run.save_or_stop()

    return run.finish(model, tokenizer)


def bradley_terry_loss(chosen_rewards: Tensor, rejected_rewards: Tensor) -> Tensor:
    """Return the loss of each pair, [B]; ln 2 where both scores are alike.

    Args:
        chosen_rewards: Score of each chosen conversation, [B].
        rejected_rewards: Score of each rejected one, [B].

    Source: InstructGPT, arXiv 2203.02155, equation 1.
    """
    return -F.logsigmoid(chosen_rewards - rejected_rewards)


@torch.no_grad()
def comparison(chosen_rewards: Tensor, rejected_rewards: Tensor) -> dict[str, Tensor]:
    """Return what is reported of each pair, by name, [B] each."""
    return {
        "accuracy": (chosen_rewards > rejected_rewards).float(),
        "margin": chosen_rewards - rejected_rewards,
        "rewards/chosen": chosen_rewards,
        "rewards/rejected": rejected_rewards,
    }


@torch.no_grad()
def evaluate_pairs(model: Any, tokenizer: Any, run: Run, config: RewardConfig) -> dict[str, float]:
    """Return how often, and by how much, the model prefers the chosen one of held-out pairs.

    Raises:
        ConfigurationError: ``max_seq_len`` cuts all of them before the assistant speaks.
    """
    assert config.eval_data_path is not None
    rows = PreferenceRows(confine_path(config.eval_data_path), tokenizer, config.max_seq_len, strict=config.strict)
    asked = [rows[index] for index in range(min(config.eval_size, len(rows)))]
    sums = TokenSums()
    for part in micro_batches(asked, EVALUATED_AT_ONCE):
        batch = {name: tensor.to(run.device) for name, tensor in collate_pairs(part, tokenizer.pad_token_id).items()}
        with run.autocast():
            scores, _ = score_conversations(model, batch["input_ids"], batch["attention_mask"])
        sums.add(teaching_pairs(batch["labels"]), **comparison(*scores.chunk(2)))
    if not sums.sums["margin"][1]:
        raise ConfigurationError(
            f"--eval_data_path {config.eval_data_path}: --max_seq_len {config.max_seq_len} cuts each of the first "
            f"{len(asked)} pairs before the assistant speaks"
        )
    values = sums.values(ALONE)
    return {f"eval/{name}": values[name] for name in ("accuracy", "margin")}
