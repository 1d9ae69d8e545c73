"""LoRA: supervised fine-tuning of low-rank adapters, W x + alpha / rank * B A x, while every weight W stays as it is.

The loss and the loop are those of SFT. The run leaves the merged weights (``model/``, ``save_weight``), from which any
job can start, and the adapters alone, in PEFT's format (``adapter/``) and in the scripts' (``lora_name``).
Source: LoRA, arXiv 2106.09685.

python -m trainers lora --from_weight full_sft --data_path ../dataset/sft-mini.jsonl --learning_rate 1e-3
"""

from functools import partial

from peft import PeftModel
from transformers import PreTrainedModel

from dataset.conversations import ConversationRows
from trainers.adapters import add_adapters, save_adapter, scripts_adapter, trained_share
from trainers.configs import LoRAConfig
from trainers.evaluation import evaluate_answers
from trainers.exports import publish_state
from trainers.models import check_positions, load_policy
from trainers.paths import confine_path
from trainers.runtime import Outcome, Run
from trainers.supervised import fit
from trainers.tokenizer import load_tokenizer


def train(config: LoRAConfig, run: Run) -> Outcome:
    """Train the adapters until the schedule or ``stop_at`` ends it, and merge them."""
    tokenizer = load_tokenizer(config, kept=run.kept_model)
    model = load_policy(config, tokenizer, kept=run.kept_model)
    adapted = add_adapters(model, rank=config.lora_rank, alpha=config.lora_alpha)
    run.log(trained_share(model))
    model.to(run.device).train()  # type: ignore[arg-type]  # transformers wraps torch's method
    check_positions(
        model,
        {"max_seq_len": config.max_seq_len} | ({"max_gen_len": config.max_gen_len} if config.eval_data_path else {}),
    )
    rows = ConversationRows(confine_path(config.data_path), tokenizer, config.max_seq_len, strict=config.strict)
    run.tell_skipped(rows.skipped)
    evaluate = partial(evaluate_answers, model, tokenizer, run, config)
    fit(model, tokenizer, rows, config, run, evaluate=evaluate)
    run.save()  # while the adapters are apart from the weights
    return run.finish(export_and_merge(adapted, model, config, run), tokenizer)


def export_and_merge(adapted: PeftModel, model: PreTrainedModel, config: LoRAConfig, run: Run) -> PreTrainedModel:
    """Write the adapters alone, in PEFT's format and, where the scripts know the architecture, in theirs; merge them.

    Returns:
        The plain model with the merged weights.
    """
    alone = scripts_adapter(model)
    if run.ranks.is_main:
        save_adapter(adapted, run.folder / "adapter")
    merged: PreTrainedModel = adapted.merge_and_unload()
    if run.ranks.is_main:
        published = publish_state(alone, merged, name=config.lora_name, save_dir=config.save_dir)
        as_the_scripts = f" and, as the scripts keep it, in {published}" if published else ""
        run.log(f"adapter in {run.folder / 'adapter'}{as_the_scripts}")
    return merged
