"""The loss of the reward model on worked values, what it learns, and its use as a reward."""

import json
import math

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from dataset.preferences import PreferenceRows
from tests.trainers.grpo_runs import metrics_of, run_grpo, save_start
from tests.trainers.pair_runs import ANSWERED, TOO_LONG, conversation, run_pairs, share_pad_with_eos, write_pairs
from trainers.pairs import collate_pairs
from trainers.reward import bradley_terry_loss
from trainers.reward_model import load_reward_model
from trainers.scorer import score_conversations


def test_the_loss_is_minus_log_sigmoid_of_the_difference():
    """ln 2 when alike; -log sigmoid(2) = 0.126928; -log sigmoid(-2) = 2.126928."""
    losses = bradley_terry_loss(torch.tensor([1.0, 3.0, -1.0]), torch.tensor([1.0, 1.0, 1.0]))
    assert losses.tolist() == pytest.approx([math.log(2), 0.126928, 2.126928], abs=1e-6)


def test_scores_that_all_move_alike_change_nothing():
    chosen, rejected = torch.tensor([0.3]), torch.tensor([-0.4])
    assert torch.allclose(bradley_terry_loss(chosen + 5, rejected + 5), bradley_terry_loss(chosen, rejected))


def test_the_gradient_pushes_the_two_apart_alike():
    chosen, rejected = torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)
    bradley_terry_loss(chosen, rejected).sum().backward()
    assert (chosen.grad.item(), rejected.grad.item()) == (-0.5, 0.5)


def test_metrics_have_their_standard_names_and_the_log_reads_as_the_scripts_print(pairs):
    assert run_pairs("reward", "runs/1", max_steps=2, log_interval=2) == 0
    ((_, first), (step, values)) = metrics_of(pairs / "1")
    assert step == 2
    assert list(values) == [
        "loss",
        "accuracy",
        "margin",
        "rewards/chosen",
        "rewards/rejected",
        "learning_rate",
        "grad_norm",
        "num_tokens",
    ]
    assert first["loss"] == pytest.approx(math.log(2), abs=0.1), "a fresh head's scores lie close together"
    assert values["margin"] == pytest.approx(values["rewards/chosen"] - values["rewards/rejected"], abs=1e-6)
    log = (pairs / "1" / "log.txt").read_text()
    assert f"Epoch:[1/2](2/3), loss: {values['loss']:.4g}, accuracy: " in log


def test_the_balance_of_the_experts_is_part_of_the_loss(home):
    """Report 42: with no pair to learn from it is all of it, 0.01 times about 1, and it has a gradient."""
    save_start(home, "moe")
    write_pairs(home / "runs" / "pairs.jsonl", [TOO_LONG])
    assert run_pairs("reward", "runs/1", max_steps=1) == 0
    ((_, values),) = metrics_of(home / "runs" / "1")
    assert 0.01 <= values["loss"] < 0.02
    assert values["grad_norm"] > 0.0


def test_it_learns_to_prefer_the_chosen_ones_and_says_so_of_held_out_pairs(pairs):
    flags = {"eval_data_path": "runs/pairs.jsonl", "eval_size": 4}
    assert run_pairs("reward", "runs/1", epochs=20, batch_size=10, **flags) == 0
    result = json.loads((pairs / "1" / "result.json").read_text())
    assert result["last"]["loss"] < 0.1
    assert result["eval_before"]["eval/margin"] == pytest.approx(0.0, abs=0.2)
    assert result["eval_after"]["eval/accuracy"] == 1.0
    assert result["eval_after"]["eval/margin"] > 2.0


def test_an_accuracy_that_is_reached_ends_the_run(pairs):
    flags = {"eval_data_path": "runs/pairs.jsonl", "eval_interval": 1, "stop_at": "eval/accuracy>=0.0"}
    assert run_pairs("reward", "runs/1", **flags) == 0
    assert json.loads((pairs / "1" / "result.json").read_text())["stopped_early"] is True


def test_evaluation_data_that_is_all_cut_is_one_line(pairs, capfd):
    write_pairs(pairs / "held_out.jsonl", [TOO_LONG])
    assert run_pairs("reward", "runs/1", eval_data_path="runs/held_out.jsonl") == 2
    assert capfd.readouterr().err == (
        "error: --eval_data_path runs/held_out.jsonl: --max_seq_len 64 cuts each of the first 1 pairs before the "
        "assistant speaks\n"
    )


def test_it_is_no_weight_file_of_the_scripts(pairs):
    assert run_pairs("reward", "runs/1", max_steps=1) == 0
    assert json.loads((pairs / "1" / "result.json").read_text())["published"] is None
    assert list((pairs / "out").iterdir()) == []


@pytest.mark.parametrize("kind", ["qwen3", "gpt2", "moe", "pad is eos"])
def test_the_model_folder_scores_as_the_training_did(home, kind):
    save_start(home, "qwen3" if kind == "pad is eos" else kind)
    if kind == "pad is eos":
        share_pad_with_eos(home / "runs" / "start" / "model")
    path = home / "runs" / "pairs.jsonl"
    write_pairs(path, [("1", "2", "a longer answer"), *ANSWERED[:3]])
    assert run_pairs("reward", "runs/1", max_steps=3) == 0
    folder = home / "runs" / "1" / "model"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    rows = PreferenceRows(path, tokenizer, 64)
    batch = collate_pairs([rows[index] for index in range(4)], tokenizer.pad_token_id)
    with torch.no_grad():
        trained, _ = score_conversations(model, batch["input_ids"], batch["attention_mask"])
    asked = [("1", "2"), *(pair[:2] for pair in ANSWERED[:3]), ("1", "a longer answer")]
    found = load_reward_model("runs/1/model", torch.device("cpu"))([conversation(*turns) for turns in asked])
    assert found == pytest.approx(trained[:5].tolist(), abs=1e-5)
    assert len({round(score, 4) for score in found}) == 5


def test_grpo_is_rewarded_by_it(pairs):
    assert run_pairs("reward", "runs/1", epochs=1) == 0
    assert run_grpo("runs/2", reward_model_path="runs/1/model", max_steps=1) == 0
    ((_, values),) = metrics_of(pairs / "2")
    assert values["rewards/reward_model/mean"] != 0.0
