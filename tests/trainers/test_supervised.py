"""The loop that pretraining, SFT and LoRA share."""

import json

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from dataset.conversations import ConversationRows, collate
from tests.trainers.grpo_runs import metrics_of, save_start
from tests.trainers.sft_runs import run_sft
from trainers.supervised import count_label_tokens, label_loss


def test_padding_does_not_count_in_the_balance_of_the_experts(home):
    """The attention mask shows nowhere else: a token never looks at padding that stands after it."""
    save_start(home, "moe")
    turns = [[("12", "1")], [("07+38 and 12+30 and 99+01?", "045, 042, 100")]]
    rows = [
        {"conversations": [{"role": "user", "content": q}, {"role": "assistant", "content": a}]} for ((q, a),) in turns
    ]
    (home / "runs" / "two.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = {"init_path": "runs/start/model", "use_moe": 1, "data_path": "runs/two.jsonl", "batch_size": 2}
    assert run_sft("runs/1", **flags, max_steps=1) == 0
    tokenizer = AutoTokenizer.from_pretrained(home / "runs" / "start" / "model")
    read = ConversationRows(home / "runs" / "two.jsonl", tokenizer, 340)
    batch = collate([read[0], read[1]], tokenizer.pad_token_id)
    model = AutoModelForCausalLM.from_pretrained(home / "runs" / "start" / "model")
    model.config.router_aux_loss_coef = 1.0

    def balance(**mask):
        with torch.no_grad():
            return float(model(batch["input_ids"], output_router_logits=True, **mask).aux_loss)

    with torch.no_grad():
        logits = model(batch["input_ids"], attention_mask=batch["attention_mask"]).logits
    loss = float(label_loss(logits, batch["labels"], num_label_tokens=count_label_tokens([batch])))
    masked, unmasked = balance(attention_mask=batch["attention_mask"]), balance()
    assert abs(masked - unmasked) > 0.002, "far more, times 0.01, than the loss may differ"
    assert metrics_of(home / "runs" / "1")[0][1]["loss"] == pytest.approx(loss + 0.01 * masked, abs=2e-6)
