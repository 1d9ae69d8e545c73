"""Learn the labels of written examples: the loss and the loop of pretraining, SFT and LoRA.

The loss is the cross-entropy on the label tokens, averaged over all of them in an optimizer step, on every rank.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from dataset.conversations import IGNORED, Example, collate, unlabelled_rows
from trainers.batches import Rows, micro_batches, read_batches
from trainers.configs import SupervisedConfig
from trainers.models import moe_loss, moe_options
from trainers.optim import build_optimizer, finite_loss, learning_rate_at, optimizer_step
from trainers.runtime import Run
from trainers.schedule import Schedule

SHOWN = {"loss": "loss", "learning_rate": "lr", "grad_norm": "grad_norm"}


def label_loss(logits: Tensor, labels: Tensor, *, num_label_tokens: int) -> Tensor:
    """Return one micro-batch's part of the mean cross-entropy over an optimizer step's label tokens.

    The parts of a step add up to the same mean, however it is cut into micro-batches and spread over ranks.

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


def warn_of_cut_rows(batches: Sequence[dict[str, Tensor]], max_seq_len: int, run: Run) -> None:
    """Say once in the log that rows end before the assistant speaks, and so teach nothing."""
    known = run.extra.get("cut_rows", 0)
    cut = run.count("cut_rows", sum(unlabelled_rows(batch["labels"]) for batch in batches)) - known
    if cut and not known:
        rows = sum(len(batch["labels"]) for batch in batches) * run.ranks.world_size
        run.log(
            f"warning: {cut} of the {rows} rows of step {run.step} are cut by --max_seq_len {max_seq_len} "
            "before the assistant speaks, and teach nothing"
        )


def fit(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    rows: Rows[Example],
    config: SupervisedConfig,
    run: Run,
    *,
    evaluate: Callable[[], dict[str, float]],
) -> None:
    """Train ``model`` until the schedule or ``stop_at`` ends it."""
    forward: Any = torch.compile(model) if config.use_compile else model
    optimizer = build_optimizer(model, config)
    run.resume(Schedule.of(config, rows=len(rows), ranks=run.ranks), model=model, optimizer=optimizer)
    run.keep_model(model, tokenizer)
    batches = read_batches(rows, run.schedule, after_step=run.step, num_workers=config.num_workers)

    while not run.target_reached(evaluate) and run.step < run.total_steps:
        run.begin_step()

        # 1. Batch: the rows of one optimizer step, in micro-batches padded to their own longest row
        parts = [collate(part, tokenizer.pad_token_id) for part in micro_batches(next(batches), config.batch_size)]
        num_label_tokens = int(run.ranks.sum(count_label_tokens(parts)))
        num_parts = run.ranks.sum(len(parts))
        num_tokens = run.count("num_tokens", sum(int(part["attention_mask"].sum()) for part in parts))
        warn_of_cut_rows(parts, config.max_seq_len, run)

        # 2. Loss and gradients
        total_loss = torch.zeros((), device=run.device)
        for part in parts:
            batch = {name: tensor.to(run.device) for name, tensor in part.items()}  # [B, S] each
            with run.autocast():
                outputs = forward(batch["input_ids"], attention_mask=batch["attention_mask"], **moe_options(model))
            loss = label_loss(outputs.logits, batch["labels"], num_label_tokens=num_label_tokens)
            loss = loss + moe_loss(model, outputs) / num_parts
            run.scaler.scale(loss).backward()
            total_loss += loss.detach()

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
                    "learning_rate": learning_rate,
                    "grad_norm": grad_norm,
                    "num_tokens": num_tokens,
                },
                shown=SHOWN,
            )

        # 5. Save, and end here when asked to
        run.save_or_stop()
