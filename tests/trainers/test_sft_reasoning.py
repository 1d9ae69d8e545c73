"""What train_reason.py did is SFT on rows that think before they answer."""

import json

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from dataset.conversations import ConversationRows
from tests.trainers.grpo_runs import TOKENIZER, metrics_of
from tests.trainers.sft_runs import run_sft


def test_a_reasoning_row_is_learned_whole(home):
    """As train_reason.py trains: the tags, the thinking and the answer, each of whose tokens counts alike."""
    answer = "<think>\n7+8=15\n</think>\n\n<answer>\n045\n</answer>"
    turns = [{"role": "user", "content": "07+38"}, {"role": "assistant", "content": answer}]
    (home / "runs" / "data.jsonl").write_text(json.dumps({"conversations": turns}) + "\n")
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    [example] = ConversationRows(home / "runs" / "data.jsonl", tokenizer, 720)
    learned = [token for token in example["labels"] if token != -100]
    assert tokenizer.decode(learned).rstrip("\n") == f"{answer}<|im_end|>"
    assert run_sft("runs/1", save_weight="reason", max_seq_len=720, max_steps=1) == 0
    assert (home / "runs" / "out" / "reason_32.pth").exists()
    model = AutoModelForCausalLM.from_pretrained(home / "runs" / "1" / "model")
    assert run_sft("runs/2", init_path="runs/1/model", max_seq_len=720, max_steps=1) == 0
    ids = torch.tensor([example["input_ids"]])
    with torch.no_grad():
        loss = model(ids, labels=torch.tensor([example["labels"]])).loss.item()
    assert metrics_of(home / "runs" / "2")[0][1]["loss"] == pytest.approx(loss, rel=1e-5)
