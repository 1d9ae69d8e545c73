"""Supervised fine-tuning: cross-entropy on the tokens that the assistant says, averaged over all of them in a step.

python -m trainers sft --from_weight none --data_path ../dataset/sft-mini.jsonl --learning_rate 1e-3
"""

from functools import partial

from dataset.conversations import ConversationRows
from trainers.configs import SFTConfig
from trainers.evaluation import evaluate_answers
from trainers.models import check_positions, load_policy
from trainers.paths import confine_path
from trainers.runtime import Outcome, Run
from trainers.supervised import fit
from trainers.tokenizer import load_tokenizer


def train(config: SFTConfig, run: Run) -> Outcome:
    """Train every weight until the schedule or ``stop_at`` ends it."""
    tokenizer = load_tokenizer(config, kept=run.kept_model)
    model = load_policy(config, tokenizer, kept=run.kept_model)
    model.to(run.device).train()  # type: ignore[arg-type]  # transformers wraps torch's method
    check_positions(
        model,
        {"max_seq_len": config.max_seq_len} | ({"max_gen_len": config.max_gen_len} if config.eval_data_path else {}),
    )
    rows = ConversationRows(confine_path(config.data_path), tokenizer, config.max_seq_len, strict=config.strict)
    run.tell_skipped(rows.skipped)
    evaluate = partial(evaluate_answers, model, tokenizer, run, config)
    fit(model, tokenizer, rows, config, run, evaluate=evaluate)
    return run.finish(model, tokenizer)
