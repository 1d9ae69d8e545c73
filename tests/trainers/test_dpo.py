"""DPO's loss on worked values, and what one step of it learns and reports."""

import json
import math

import pytest
import torch

from tests.trainers.grpo_runs import metrics_of, save_start
from tests.trainers.pair_runs import ANSWERED, FRESH_MOE, run_pairs, write_pairs
from trainers.dpo import completion_sums, dpo_loss, pair_metrics

NONE = -100


def test_a_policy_that_is_the_reference_has_loss_ln_2():
    logps = torch.tensor([-3.0, -7.0])
    assert dpo_loss(logps, logps - 1, logps, logps - 1, beta=0.1).tolist() == pytest.approx([0.693147, 0.693147])


def test_a_margin_of_2_at_beta_a_tenth():
    """Report 9: the chosen sum rose by 1 and the rejected one fell by 1; -log sigmoid(0.2)."""
    loss = dpo_loss(*(torch.tensor([value]) for value in (-4.0, -6.0, -5.0, -5.0)), beta=0.1)
    assert loss.item() == pytest.approx(0.598139, abs=1e-6)


def test_the_gradient_pushes_the_two_apart_alike():
    """At margin 0 its size is beta / 2, on either side."""
    chosen, rejected = torch.tensor([-1.0], requires_grad=True), torch.tensor([-2.0], requires_grad=True)
    dpo_loss(chosen, rejected, chosen.detach(), rejected.detach(), beta=0.4).sum().backward()
    assert chosen.grad.item() == pytest.approx(-0.2)
    assert rejected.grad.item() == pytest.approx(0.2)


def test_sums_are_over_the_tokens_of_the_completion_whatever_the_padding():
    """Report 9: four equal logits make ln 4 of each of two tokens; a longer padding changes nothing."""
    logits, labels = torch.zeros(2, 4, 4), torch.tensor([[NONE, 1, 2, NONE], [NONE, NONE, NONE, 3]])
    expected = [pytest.approx(-2 * math.log(4)), pytest.approx(-math.log(4))]
    assert completion_sums(logits, labels).tolist() == expected
    padded = torch.cat([labels, torch.full((2, 4), NONE)], dim=1)
    assert completion_sums(torch.zeros(2, 8, 4), padded).tolist() == expected


def test_position_t_predicts_token_t_plus_1():
    logits = torch.full((1, 4, 6), -100.0)
    for position, following in enumerate([2, 3, 4]):
        logits[0, position, following] = 100.0
    assert completion_sums(logits, torch.tensor([[NONE, NONE, 3, 4]])).item() == 0.0


def test_without_a_label_the_sum_and_its_gradient_are_0():
    logits = torch.randn(1, 3, 4, requires_grad=True)
    total = completion_sums(logits, torch.full((1, 3), NONE))
    total.sum().backward()
    assert total.item() == 0.0
    assert torch.equal(logits.grad, torch.zeros(1, 3, 4))


def test_rewards_are_log_ratios_times_beta():
    """Chosen -4 against -5, rejected -6 against -5: 0.1 and -0.1 at beta 0.1."""
    values = pair_metrics(torch.tensor([-4.0, -6.0]), torch.tensor([-5.0, -5.0]), beta=0.1)
    assert {name: round(value.item(), 6) for name, value in values.items()} == {
        "rewards/chosen": 0.1,
        "rewards/rejected": -0.1,
        "rewards/accuracies": 1.0,
        "rewards/margins": 0.2,
        "logps/chosen": -4.0,
        "logps/rejected": -6.0,
    }


@pytest.mark.parametrize("kind", ["qwen3", "gpt2"])
def test_before_the_first_step_policy_and_reference_agree_exactly(home, kind):
    """Also with GPT-2's dropout of 0.1."""
    save_start(home, kind)
    write_pairs(home / "runs" / "pairs.jsonl", ANSWERED)
    assert run_pairs("dpo", "runs/1", max_steps=1) == 0
    ((_, values),) = metrics_of(home / "runs" / "1")
    assert values["loss"] == pytest.approx(math.log(2), abs=1e-7)
    assert [values[f"rewards/{name}"] for name in ("chosen", "rejected", "accuracies", "margins")] == [0.0] * 4
    assert values["grad_norm"] > 0.0


def test_the_balance_of_the_experts_is_part_of_the_loss(pairs):
    """Report 42: 0.0005 times a balance that is 1 when the experts share evenly; the weight file is named for them."""
    assert run_pairs("dpo", "runs/1", **FRESH_MOE, max_steps=1) == 0
    ((_, values),) = metrics_of(pairs / "1")
    assert 5e-4 <= values["loss"] - math.log(2) < 1e-3
    assert (pairs / "out" / "dpo_32_moe.pth").exists()


def test_metrics_have_their_standard_names_and_the_log_reads_as_the_scripts_print(pairs):
    assert run_pairs("dpo", "runs/1", max_steps=2, log_interval=2) == 0
    (_, (step, values)) = metrics_of(pairs / "1")
    assert step == 2
    assert list(values) == [
        "loss",
        "rewards/chosen",
        "rewards/rejected",
        "rewards/accuracies",
        "rewards/margins",
        "logps/chosen",
        "logps/rejected",
        "learning_rate",
        "grad_norm",
        "num_tokens",
    ]
    assert values["rewards/margins"] == pytest.approx(values["rewards/chosen"] - values["rewards/rejected"], abs=1e-6)
    line = next(line for line in (pairs / "1" / "log.txt").read_text().splitlines() if line.startswith("Epoch:[1/2](2"))
    assert line.startswith(f"Epoch:[1/2](2/3), loss: {values['loss']:.4g}, accuracy: ")
    assert ", lr: 0.003, grad_norm: " in line


def test_a_smaller_beta_makes_smaller_rewards_of_the_same_log_ratios(pairs):
    """One step moves the weights alike, since AdamW takes the gradient's direction; beta then scales what is seen."""
    run_pairs("dpo", "runs/1", max_steps=2, beta=0.1)
    run_pairs("dpo", "runs/2", max_steps=2, beta=0.2)
    one, two = (metrics_of(pairs / name)[1][1] for name in "12")
    assert one["logps/chosen"] == pytest.approx(two["logps/chosen"], abs=1e-2)
    assert two["rewards/margins"] == pytest.approx(2 * one["rewards/margins"], rel=0.05)


def test_it_learns_to_prefer_the_chosen_ones(pairs):
    assert run_pairs("dpo", "runs/1", epochs=25, batch_size=10, beta=0.3) == 0
    result = json.loads((pairs / "1" / "result.json").read_text())
    assert result["last"]["loss"] < 0.2
    assert result["last"]["rewards/accuracies"] == 1.0
    assert result["last"]["rewards/margins"] > 1.0


def test_it_answers_held_out_questions(pairs):
    assert run_pairs("dpo", "runs/1", max_steps=1, eval_data_path="runs/data.jsonl", max_gen_len=4) == 0
    result = json.loads((pairs / "1" / "result.json").read_text())
    assert result["eval_after"].keys() == {"eval/greedy_accuracy", "eval/sampled_accuracy", "eval/completion_length"}
