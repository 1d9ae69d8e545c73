"""Pretraining: cross-entropy on every token of plain text, each text a row of its own, averaged over a step's tokens.

python -m trainers pretrain --data_path ../dataset/pretrain-mini.jsonl --hidden_size 64 --num_hidden_layers 2
"""

import math
from functools import partial

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from dataset.conversations import collate
from dataset.pretraining import TextRows
from trainers.batches import micro_batches
from trainers.configs import PretrainConfig
from trainers.models import check_positions, load_policy
from trainers.paths import confine_path
from trainers.runtime import Outcome, Run
from trainers.supervised import count_label_tokens, fit, label_loss
from trainers.tokenizer import load_tokenizer


def train(config: PretrainConfig, run: Run) -> Outcome:
    """Train every weight until the schedule or ``stop_at`` ends it."""
    tokenizer = load_tokenizer(config, kept=run.kept_model)
    model = load_policy(config, tokenizer, kept=run.kept_model)
    model.to(run.device).train()  # type: ignore[arg-type]  # transformers wraps torch's method
    check_positions(model, {"max_seq_len": config.max_seq_len})
    rows = TextRows(confine_path(config.data_path), tokenizer, config.max_seq_len, strict=config.strict)
    run.tell_skipped(rows.skipped)
    evaluate = partial(evaluate_texts, model, tokenizer, run, config)
    fit(model, tokenizer, rows, config, run, evaluate=evaluate)
    return run.finish(model, tokenizer)


@torch.no_grad()
def evaluate_texts(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, run: Run, config: PretrainConfig
) -> dict[str, float]:
    """Return the mean loss over every token of the held-out texts, and its perplexity; ranks share the texts."""
    assert config.eval_data_path is not None
    rows = TextRows(confine_path(config.eval_data_path), tokenizer, config.max_seq_len, strict=config.strict)
    chosen = [rows[index] for index in run.schedule.share(range(min(config.eval_size, len(rows))))]
    parts = [collate(part, tokenizer.pad_token_id) for part in micro_batches(chosen, config.batch_size)]
    total_loss = torch.zeros((), dtype=torch.float64, device=run.device)
    model.eval()
    for part in parts:
        batch = {name: tensor.to(run.device) for name, tensor in part.items()}  # [B, S] each
        with run.autocast():
            logits = model(batch["input_ids"], attention_mask=batch["attention_mask"]).logits  # [B, S, V]
        total_loss += label_loss(logits, batch["labels"], num_label_tokens=1)  # a sum, not a mean
    model.train()
    loss = float(run.ranks.sum(total_loss)) / max(int(run.ranks.sum(count_label_tokens(parts))), 1)
    return {"eval/loss": loss, "eval/perplexity": math.exp(min(loss, 700.0))}  # beyond it a float overflows
