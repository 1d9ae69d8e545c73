"""DPO: make the chosen completion of a pair likelier than the rejected one, by more than the reference does.

    python -m trainers dpo --init_path runs/1/model --data_path ../dataset/dpo-mini.jsonl --learning_rate 1e-5

The loss is -log sigmoid of ``beta`` times the difference of two log-ratios, each of a whole completion: a sum over its
tokens, not a mean, averaged over the pairs of a step. The reference is a frozen copy of the starting weights. Either
model runs in eval mode, so that the loss is ln 2 before the first step. Pairs that ``max_seq_len`` cuts before the
assistant speaks are left out.

Source: DPO, arXiv 2305.18290.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from dataset.conversations import IGNORED
from dataset.preferences import PreferenceRows
from trainers.batches import micro_batches, read_batches
from trainers.configs import DPOConfig
from trainers.evaluation import evaluate_answers
from trainers.experience import TokenSums
from trainers.logps import selective_log_softmax
from trainers.models import check_positions, frozen_copy, load_policy, moe_loss, moe_options
from trainers.optim import build_optimizer, finite_loss, learning_rate_at, optimizer_step
from trainers.pairs import collate_pairs, count_teaching_pairs, teaching_pairs, warn_of_cut_pairs
from trainers.paths import confine_path
from trainers.runtime import Outcome, Run
from trainers.schedule import Schedule
from trainers.tokenizer import load_tokenizer

SHOWN = {
    "loss": "loss",
    "rewards/accuracies": "accuracy",
    "rewards/margins": "margin",
    "learning_rate": "lr",
    "grad_norm": "grad_norm",
}


def train(config: DPOConfig, run: Run) -> Outcome:
    """Train until the schedule or ``stop_at`` ends it."""
    tokenizer = load_tokenizer(config, kept=run.kept_model)
    policy = load_policy(config, tokenizer, kept=run.kept_model)
    # In eval mode throughout: with dropout, the log-ratios would compare noise instead of weights.
    policy.to(run.device).eval()  # type: ignore[arg-type]  # transformers wraps torch's method
    check_positions(
        policy,
        {"max_seq_len": config.max_seq_len} | ({"max_gen_len": config.max_gen_len} if config.eval_data_path else {}),
    )
    rows = PreferenceRows(confine_path(config.data_path), tokenizer, config.max_seq_len, strict=config.strict)
    run.tell_skipped(rows.skipped)
    reference = frozen_copy(policy)  # of the starting weights
    forward: Any = torch.compile(policy) if config.use_compile else policy
    optimizer = build_optimizer(policy, config)
    run.resume(Schedule.of(config, rows=len(rows), ranks=run.ranks), model=policy, optimizer=optimizer)
    run.keep_model(policy, tokenizer)
    run.keep_reference(reference)
    batches = read_batches(rows, run.schedule, after_step=run.step, num_workers=config.num_workers)
    evaluate = partial(evaluate_answers, policy, tokenizer, run, config)

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

        total_loss = torch.zeros((), device=run.device)
        sums = TokenSums()
        for part in parts:
            batch = {name: tensor.to(run.device) for name, tensor in part.items()}  # [2B, S] each
            inputs = {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"]}
            teaches = teaching_pairs(batch["labels"])  # [B]

            # 2. Log-probabilities of the completions under reference and policy
            with run.autocast():
                with torch.no_grad():
                    ref_logps = completion_sums(reference(**inputs).logits, batch["labels"])  # [2B]
                outputs = forward(**inputs, **moe_options(policy))
                logps = completion_sums(outputs.logits, batch["labels"])  # [2B]

            # 3. Loss and gradients: this micro-batch's part of the mean over all pairs
            losses = dpo_loss(*logps.chunk(2), *ref_logps.chunk(2), beta=config.beta)  # [B]
            loss = (losses * teaches).sum() / max(num_pairs, 1)
            loss = loss + moe_loss(policy, outputs) / num_parts
            run.scaler.scale(loss).backward()
            total_loss += loss.detach()
            sums.add(teaches, **pair_metrics(logps.detach(), ref_logps, beta=config.beta))

        # 4. Optimizer step
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

        # 5. Log
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

        # 6. Save, and end here when asked to
        run.save_or_stop()

    return run.finish(policy, tokenizer)


def dpo_loss(
    chosen_logps: Tensor, rejected_logps: Tensor, ref_chosen_logps: Tensor, ref_rejected_logps: Tensor, *, beta: float
) -> Tensor:
    """Return the loss of each pair, [B]; ln 2 where the policy prefers as the reference does.

    Args:
        chosen_logps: Log-probability of each chosen completion under the policy, summed over its tokens, [B].
        rejected_logps: The same of the rejected ones, [B].
        ref_chosen_logps: As ``chosen_logps``, under the reference, [B].
        ref_rejected_logps: As ``rejected_logps``, under the reference, [B].
        beta: How strongly the policy is held to the reference.

    Source: DPO, arXiv 2305.18290, equation 7.
    """
    return -F.logsigmoid(beta * ((chosen_logps - ref_chosen_logps) - (rejected_logps - ref_rejected_logps)))


def pair_metrics(logps: Tensor, ref_logps: Tensor, *, beta: float) -> dict[str, Tensor]:
    """Return what is reported of each pair, by name, [B] each, from the sums of both sides, [2B]."""
    chosen_logps, rejected_logps = logps.chunk(2)
    chosen_rewards, rejected_rewards = (beta * (logps - ref_logps)).chunk(2)
    return {
        "rewards/chosen": chosen_rewards,
        "rewards/rejected": rejected_rewards,
        "rewards/accuracies": (chosen_rewards > rejected_rewards).float(),
        "rewards/margins": chosen_rewards - rejected_rewards,
        "logps/chosen": chosen_logps,
        "logps/rejected": rejected_logps,
    }


def completion_sums(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the log-probability of each row's labels, summed over its tokens, [N]; 0 without any.

    Args:
        logits: Of every position, [N, S, V]; position t predicts token t + 1.
        labels: The tokens themselves, [N, S]; -100 where they are no completion.
    """
    targets = labels[:, 1:]  # [N, S-1]
    per_token_logps = selective_log_softmax(logits[:, :-1], targets.clamp(min=0))  # [N, S-1]
    return per_token_logps.masked_fill(targets == IGNORED, 0.0).sum(-1)
