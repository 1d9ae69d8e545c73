"""Distillation: a student learns the labels, and a frozen teacher's whole distribution at each of them.

    python -m trainers distillation --from_student_weight none --teacher_path runs/1/model \\
        --data_path ../dataset/sft-mini.jsonl --student_hidden_size 64 --student_num_layers 2 --learning_rate 1e-3

The loss is alpha * cross-entropy + (1 - alpha) * T^2 * KL(teacher || student), both distributions softened by the
temperature T, averaged over the label tokens of the whole optimizer step. The balance of a student's experts is added
beside it. The teacher may have any architecture and size over the same vocabulary. With alpha 1 it is not even read.

Source: Distilling the knowledge in a neural network, arXiv 1503.02531.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from dataset.conversations import IGNORED, ConversationRows, collate
from trainers.batches import micro_batches, read_batches
from trainers.configs import DistillationConfig
from trainers.evaluation import evaluate_answers
from trainers.models import check_positions, load_policy, moe_loss, moe_options
from trainers.optim import build_optimizer, finite_loss, learning_rate_at, optimizer_step
from trainers.paths import confine_path
from trainers.runtime import Outcome, Run
from trainers.schedule import Schedule
from trainers.supervised import count_label_tokens, label_loss, warn_of_cut_rows
from trainers.teacher import load_teacher, require_same_teacher
from trainers.tokenizer import load_tokenizer

SHOWN = {
    "loss": "loss",
    "ce_loss": "ce",
    "distillation_loss": "distill",
    "learning_rate": "lr",
    "grad_norm": "grad_norm",
}


def train(config: DistillationConfig, run: Run) -> Outcome:
    """Train the student until the schedule or ``stop_at`` ends it."""
    tokenizer = load_tokenizer(config, kept=run.kept_model)
    student = load_policy(config, tokenizer, kept=run.kept_model)
    student.to(run.device).train()  # type: ignore[arg-type]  # transformers wraps torch's method
    check_positions(
        student,
        {"max_seq_len": config.max_seq_len} | ({"max_gen_len": config.max_gen_len} if config.eval_data_path else {}),
    )
    teacher = load_teacher(config, student, tokenizer, run.device) if config.alpha < 1 else None
    rows = ConversationRows(confine_path(config.data_path), tokenizer, config.max_seq_len, strict=config.strict)
    run.tell_skipped(rows.skipped)
    distill(student, teacher, tokenizer, rows, config, run)
    return run.finish(student, tokenizer)


def distill(
    student: PreTrainedModel,
    teacher: PreTrainedModel | None,
    tokenizer: PreTrainedTokenizerBase,
    rows: ConversationRows,
    config: DistillationConfig,
    run: Run,
) -> None:
    """Train ``student``; without a ``teacher``, on the labels alone."""
    forward: Any = torch.compile(student) if config.use_compile else student
    optimizer = build_optimizer(student, config)
    run.resume(Schedule.of(config, rows=len(rows), ranks=run.ranks), model=student, optimizer=optimizer)
    run.keep_model(student, tokenizer)
    if teacher is not None:
        require_same_teacher(teacher, run)
    batches = read_batches(rows, run.schedule, after_step=run.step, num_workers=config.num_workers)
    evaluate = partial(evaluate_answers, student, tokenizer, run, config)

    while not run.target_reached(evaluate) and run.step < run.total_steps:
        run.begin_step()

        # 1. Batch: the rows of one optimizer step, in micro-batches padded to their own longest row
        parts = [collate(part, tokenizer.pad_token_id) for part in micro_batches(next(batches), config.batch_size)]
        num_label_tokens = int(run.ranks.sum(count_label_tokens(parts)))
        num_parts = run.ranks.sum(len(parts))
        num_tokens = run.count("num_tokens", sum(int(part["attention_mask"].sum()) for part in parts))
        warn_of_cut_rows(parts, config.max_seq_len, run)

        total_loss = torch.zeros((), device=run.device)
        terms = {"ce_loss": torch.zeros_like(total_loss), "distillation_loss": torch.zeros_like(total_loss)}
        for part in parts:
            batch = {name: tensor.to(run.device) for name, tensor in part.items()}  # [B, S] each
            inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}

            # 2. Logits of the teacher, of one micro-batch at a time, and of the student
            with run.autocast():
                if teacher is not None:
                    with torch.no_grad():
                        teacher_logits = teacher(**inputs).logits  # [B, S, V]
                outputs = forward(**inputs, **moe_options(student))

            # 3. Loss and gradients
            loss = moe_loss(student, outputs) / num_parts
            if config.alpha > 0:
                ce_loss = label_loss(outputs.logits, batch["labels"], num_label_tokens=num_label_tokens)
                loss = loss + config.alpha * ce_loss
                terms["ce_loss"] += ce_loss.detach()
            if teacher is not None:
                kl = distillation_loss(
                    outputs.logits,
                    teacher_logits,
                    batch["labels"],
                    temperature=config.temperature,
                    num_label_tokens=num_label_tokens,
                )
                loss = loss + (1 - config.alpha) * kl
                terms["distillation_loss"] += kl.detach()
            run.scaler.scale(loss).backward()
            total_loss += loss.detach()

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
            computed = {"ce_loss": config.alpha > 0, "distillation_loss": teacher is not None}
            run.report(
                {
                    "loss": mean_loss,
                    **{name: float(run.ranks.sum(term)) for name, term in terms.items() if computed[name]},
                    "learning_rate": learning_rate,
                    "grad_norm": grad_norm,
                    "num_tokens": num_tokens,
                },
                shown=SHOWN,
            )

        # 6. Save, and end here when asked to
        run.save_or_stop()


def distillation_loss(
    student_logits: Tensor, teacher_logits: Tensor, labels: Tensor, *, temperature: float, num_label_tokens: int
) -> Tensor:
    """Return one micro-batch's part of T^2 * KL(teacher || student), averaged over a step's label tokens.

    T^2 keeps the gradient's size alike at every temperature T. Nothing but label positions enters a softmax.

    Args:
        student_logits: Of every position, [B, S, V]; position t predicts token t + 1.
        teacher_logits: Likewise, [B, S, V].
        labels: The tokens themselves, [B, S]; -100 where nothing is learned.
        temperature: Divides both logits.
        num_label_tokens: Label tokens of the whole step; without any the loss is 0.

    Source: arXiv 1503.02531, section 2.
    """
    taught = labels[:, 1:] != IGNORED  # [B, S-1]; L of them
    student_logps = F.log_softmax(student_logits[:, :-1][taught].float() / temperature, dim=-1)  # [L, V]
    teacher_probs = F.softmax(teacher_logits[:, :-1][taught].float() / temperature, dim=-1)  # [L, V]
    kl = F.kl_div(student_logps, teacher_probs, reduction="sum")
    return temperature**2 * kl / max(num_label_tokens, 1)
