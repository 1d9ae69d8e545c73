"""Supervised fine-tuning: cross-entropy on the tokens that the assistant says, averaged over all of them in a step.

python -m trainers sft --from_weight none --data_path ../dataset/sft-mini.jsonl --learning_rate 1e-3
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from dataset.conversations import IGNORED, ConversationRows, collate, unlabelled_rows
from trainers.batches import micro_batches, read_batches
from trainers.configs import SFTConfig
from trainers.models import check_positions, load_policy, moe_loss, moe_options
from trainers.optim import build_optimizer, finite_loss, learning_rate_at, optimizer_step
from trainers.paths import confine_path
from trainers.runtime import Outcome, Run
from trainers.schedule import Schedule
from trainers.tokenizer import load_tokenizer

SHOWN = {"loss": "loss", "learning_rate": "lr", "grad_norm": "grad_norm"}


def sft_loss(logits: Tensor, labels: Tensor, *, num_label_tokens: int) -> Tensor:
    """Return one micro-batch's part of the mean cross-entropy over an optimizer step's label tokens.

    The parts of a step add up to the same mean, however it is cut into micro-batches.

    Args:
        logits: Of every position, [B, S, V]; position t predicts token t + 1.
        labels: The tokens themselves, [B, S]; -100 where nothing is learned.
        num_label_tokens: Label tokens of the whole step; without any the loss is 0.
    """
    targets = labels[:, 1:].flatten()  # [B*(S-1)]
    predicted = logits[:, :-1].flatten(0, 1).float()  # [B*(S-1), V]
    return F.cross_entropy(predicted, targets, ignore_index=IGNORED, reduction="sum") / max(num_label_tokens, 1)


def count_label_tokens(batches: Sequence[dict[str, Tensor]]) -> int:
    """Return how many tokens the micro-batches of one step teach."""
    return sum(int((batch["labels"][:, 1:] != IGNORED).sum()) for batch in batches)


def warn_of_cut_rows(batches: Sequence[dict[str, Tensor]], config: SFTConfig, run: Run) -> None:
    """Say once in the log that rows end before the assistant speaks, and so teach nothing."""
    cut = sum(unlabelled_rows(batch["labels"]) for batch in batches)
    if cut and not run.extra.get("cut_rows"):
        rows = sum(len(batch["labels"]) for batch in batches)
        run.log(
            f"warning: {cut} of the {rows} rows of step {run.step} are cut by --max_seq_len {config.max_seq_len} "
            "before the assistant speaks, and teach nothing"
        )
    run.extra["cut_rows"] = run.extra.get("cut_rows", 0) + cut


def train(config: SFTConfig, run: Run) -> Outcome:
    """Train until the schedule or ``stop_at`` ends it."""
    tokenizer = load_tokenizer(config)
    model = load_policy(config, tokenizer)
    model.to(run.device).train()  # type: ignore[arg-type]  # transformers wraps torch's method
    check_positions(
        model,
        {"max_seq_len": config.max_seq_len} | ({"max_gen_len": config.max_gen_len} if config.eval_data_path else {}),
    )
    forward = torch.compile(model) if config.use_compile else model
    rows = ConversationRows(confine_path(config.data_path), tokenizer, config.max_seq_len)
    optimizer = build_optimizer(model, config)
    run.resume(model, optimizer, Schedule.of(config, rows=len(rows)))
    batches = read_batches(rows, run.schedule, after_step=run.step, num_workers=config.num_workers)

    while not run.target_reached(model, tokenizer) and run.step < run.total_steps:
        run.begin_step(model, optimizer)

        # 1. Batch: the rows of one optimizer step, in micro-batches padded to their own longest row
        parts = [collate(part, tokenizer.pad_token_id) for part in micro_batches(next(batches), config.batch_size)]
        num_label_tokens = count_label_tokens(parts)
        warn_of_cut_rows(parts, config, run)
        run.extra["num_tokens"] = run.extra.get("num_tokens", 0) + sum(int(p["attention_mask"].sum()) for p in parts)

        # 2. Loss and gradients
        total_loss = torch.zeros((), device=run.device)
        for part in parts:
            batch = {name: tensor.to(run.device) for name, tensor in part.items()}  # [B, S] each
            with run.autocast():
                outputs = forward(batch["input_ids"], attention_mask=batch["attention_mask"], **moe_options(model))
            loss = sft_loss(outputs.logits, batch["labels"], num_label_tokens=num_label_tokens)
            loss = loss + moe_loss(model, outputs) / len(parts)
            run.scaler.scale(loss).backward()
            total_loss += loss.detach()

        # 3. Optimizer step
        mean_loss = finite_loss(total_loss, step=run.step)
        learning_rate = learning_rate_at(run.step, run.total_steps, config)
        grad_norm = optimizer_step(
            optimizer,
            model.parameters(),
            learning_rate=learning_rate,
            grad_clip=config.grad_clip,
            scaler=run.scaler,
            step=run.step,
        )

        # 4. Log
        if run.log_due():
            run.report(
                {
                    "loss": mean_loss,
                    "learning_rate": learning_rate,
                    "grad_norm": grad_norm,
                    "num_tokens": run.extra["num_tokens"],
                },
                shown=SHOWN,
            )

        # 5. Save, and end here when asked to
        run.save_or_stop(model, optimizer)

    return run.finish(model, tokenizer, optimizer)
