import json
import os
import signal

import pytest
import torch

from tests.trainers.sft_runs import run_sft
from trainers import sft
from trainers.records import read_rows
from trainers.supervised import count_label_tokens, label_loss

EVEN = torch.log(torch.tensor(4.0)).item()  # the loss of a token under four equal logits


def metrics_of(folder):
    return [
        (row["step"], row["epoch"], {name: value for name, value in row["values"].items() if name != "step_time"})
        for row in read_rows(folder / "metrics.jsonl")
    ]


def weights_of(folder):
    return torch.load(folder / "checkpoint" / "state.pt", weights_only=True)["model"]


def same_weights(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


def test_position_t_predicts_token_t_plus_1():
    logits = torch.full((1, 5, 6), -100.0)
    for position, following in enumerate([2, 3, 4, 5]):
        logits[0, position, following] = 100.0
    labels = torch.tensor([[-100, -100, 3, 4, 5]])  # prompt 1, 2; answer 3, 4, EOS 5
    assert count_label_tokens([{"labels": labels}]) == 3
    assert label_loss(logits, labels, num_label_tokens=3).item() == 0.0


def test_the_mean_is_over_all_label_tokens_of_the_step():
    """Reports 13 and 14: four tokens of loss 1 and one of loss 3 are 7/5, not (1 + 3)/2."""

    def logits_of(loss, tokens):
        rest = torch.log(torch.expm1(torch.tensor(loss)))  # two classes: -log(1 / (1 + e^rest)) = loss
        return torch.stack([torch.zeros(tokens + 1), rest.expand(tokens + 1)], dim=-1)[None]

    first, second = torch.tensor([[-100, 0, 0, 0, 0]]), torch.tensor([[-100, 0]])
    parts = [
        label_loss(logits_of(1.0, 4), first, num_label_tokens=5),
        label_loss(logits_of(3.0, 1), second, num_label_tokens=5),
    ]
    assert sum(parts).item() == pytest.approx(1.4)


def test_loss_and_gradient_do_not_depend_on_the_split():
    torch.manual_seed(0)
    labels = torch.randint(0, 7, (8, 5))
    labels[torch.rand(8, 5) < 0.4] = -100
    total = int((labels[:, 1:] != -100).sum())
    gradients = []
    for size in (8, 2, 1):
        logits = torch.linspace(-1, 1, 8 * 5 * 7).view(8, 5, 7).requires_grad_()
        loss = sum(
            label_loss(one, two, num_label_tokens=total)
            for one, two in zip(logits.split(size), labels.split(size), strict=True)
        )
        loss.backward()
        gradients.append((loss.detach(), logits.grad))
    for loss, gradient in gradients[1:]:
        torch.testing.assert_close(loss, gradients[0][0])
        torch.testing.assert_close(gradient, gradients[0][1])


def test_a_batch_without_labels_has_loss_and_gradient_zero():
    logits = torch.randn(2, 3, 4, requires_grad=True)
    loss = label_loss(logits, torch.full((2, 3), -100), num_label_tokens=0)
    loss.backward()
    assert loss.item() == 0.0
    assert torch.equal(logits.grad, torch.zeros(2, 3, 4))


def test_masked_positions_have_no_gradient():
    logits = torch.zeros(1, 3, 4, requires_grad=True)
    loss = label_loss(logits, torch.tensor([[1, -100, 2]]), num_label_tokens=1)
    loss.backward()
    assert loss.item() == pytest.approx(EVEN)
    assert logits.grad.abs().sum(-1)[0].tolist() == [0.0, pytest.approx(1.5), 0.0]


@pytest.mark.parametrize("flags", [{}, {"use_moe": 1}, {"accumulation_steps": 2, "batch_size": 2}])
def test_three_steps_and_a_resume_equal_six_steps(home, flags):
    """Report 38: the same weights bit for bit, the same rows, rates and metrics, no step twice."""
    constant = {**flags, "lr_schedule": "constant"}  # the first part does not know of the second
    assert run_sft("runs/whole", **constant) == 0
    assert run_sft("runs/parts", **constant, max_steps=3) == 0
    assert run_sft("runs/parts", **constant, from_resume=1) == 0
    parts, whole = home / "runs" / "parts", home / "runs" / "whole"
    assert [step for step, _, _ in metrics_of(parts)] == [1, 2, 3, 4, 5, 6]
    assert metrics_of(parts) == metrics_of(whole)
    assert same_weights(weights_of(parts), weights_of(whole))


def test_a_resume_after_the_last_step_changes_nothing_and_more_epochs_continue(home):
    run_sft("runs/1", epochs=1)
    before = weights_of(home / "runs" / "1")
    assert run_sft("runs/1", epochs=1, from_resume=1) == 0
    assert same_weights(weights_of(home / "runs" / "1"), before)
    assert run_sft("runs/1", epochs=3, from_resume=1) == 0
    assert [(step, epoch) for step, epoch, _ in metrics_of(home / "runs" / "1")] == [
        (1, 1),
        (2, 1),
        (3, 1),
        (4, 2),
        (5, 2),
        (6, 2),
        (7, 3),
        (8, 3),
        (9, 3),
    ]


def test_a_new_learning_rate_wins_on_resume_and_keeps_the_schedule_position(home):
    run_sft("runs/1", max_steps=3)
    run_sft("runs/1", from_resume=1, learning_rate=0.1)
    fourth = metrics_of(home / "runs" / "1")[3]
    assert fourth[0] == 4
    assert fourth[2]["learning_rate"] == pytest.approx(0.1 * (0.1 + 0.45 * (1 - 0.5)))  # cos(pi * 4 / 6) = -0.5


def test_what_was_logged_after_the_checkpoint_stands_once_after_a_resume(home):
    flags = {"lr_schedule": "constant"}
    run_sft("runs/1", max_steps=2, **flags)
    checkpoint = (home / "runs" / "1" / "checkpoint" / "state.pt").read_bytes()
    run_sft("runs/1", max_steps=3, **flags, from_resume=1)
    (home / "runs" / "1" / "checkpoint" / "state.pt").write_bytes(checkpoint)  # as if killed after logging step 3
    run_sft("runs/1", max_steps=4, **flags, from_resume=1)
    run_sft("runs/2", max_steps=4, **flags)
    assert metrics_of(home / "runs" / "1") == metrics_of(home / "runs" / "2")


def test_without_from_resume_a_run_starts_over(home):
    run_sft("runs/1", max_steps=2)
    run_sft("runs/1", max_steps=1)
    assert [step for step, _, _ in metrics_of(home / "runs" / "1")] == [1]


def test_a_checkpoint_of_other_batches_is_refused(home, capfd):
    run_sft("runs/1", max_steps=2)
    assert run_sft("runs/1", batch_size=2, from_resume=1) == 2
    assert capfd.readouterr().err == (
        "error: the checkpoint was made with rows_per_batch 4, now 2; start a new job instead\n"
    )


def test_rows_cut_so_short_that_nothing_is_taught_do_no_harm(home):
    assert run_sft("runs/1", max_seq_len=3, epochs=1) == 0
    assert [values["loss"] for _, _, values in metrics_of(home / "runs" / "1")] == [0.0, 0.0, 0.0]


def test_rows_that_are_cut_before_the_assistant_speaks_are_told_once(home):
    run_sft("runs/1", max_seq_len=3, epochs=1)
    log = (home / "runs" / "1" / "log.txt").read_text()
    assert log.count("teach nothing") == 1
    assert (
        "warning: 4 of the 4 rows of step 1 are cut by --max_seq_len 3 before the assistant speaks, and teach nothing\n"
    ) in log


@pytest.mark.parametrize(("batch_size", "accumulation_steps"), [(2, 2), (1, 4), (3, 1)])
def test_the_loop_averages_over_the_tokens_of_the_step_however_it_is_cut(home, batch_size, accumulation_steps):
    rows = [("1", "2"), ("12+30", "a much longer answer than the others"), ("5", "6 7 8"), ("x", "y")]
    with (home / "runs" / "data.jsonl").open("w") as file:
        for question, answer in rows[: batch_size * accumulation_steps]:
            turns = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
            file.write(json.dumps({"conversations": turns}) + "\n")
    assert run_sft("runs/whole", max_steps=1) == 0
    assert run_sft("runs/cut", batch_size=batch_size, accumulation_steps=accumulation_steps, max_steps=1) == 0
    (_, _, whole), (_, _, cut) = metrics_of(home / "runs" / "whole")[0], metrics_of(home / "runs" / "cut")[0]
    assert cut["loss"] == pytest.approx(whole["loss"])
    assert cut["grad_norm"] == pytest.approx(whole["grad_norm"], rel=1e-4)


@pytest.mark.parametrize("accumulation_steps", [1, 2])
def test_the_balance_of_the_experts_is_part_of_the_loss(home, accumulation_steps):
    """Report 42: with no token to learn, the loss is the balance alone, and it has a gradient."""
    run_sft(
        "runs/1",
        use_moe=1,
        max_seq_len=3,
        batch_size=4 // accumulation_steps,
        accumulation_steps=accumulation_steps,
        max_steps=1,
    )
    values = metrics_of(home / "runs" / "1")[0][2]
    assert 5e-4 <= values["loss"] < 1e-3, "0.0005 times a balance that is 1 when the experts share evenly"
    assert values["grad_norm"] > 0.0


def test_the_loss_falls_to_nothing_on_ten_rows(home):
    run_sft("runs/1", epochs=60, batch_size=10, lr_schedule="constant")
    values = json.loads((home / "runs" / "1" / "result.json").read_text())
    assert values["first"]["loss"] > 4
    assert values["last"]["loss"] < 0.2


def test_numbers_that_are_not_finite_end_the_run_with_the_step(home, capfd):
    assert run_sft("runs/1", max_steps=1) == 0
    state_path = home / "runs" / "1" / "checkpoint" / "state.pt"
    state = torch.load(state_path, weights_only=True)
    state["model"]["model.norm.weight"][0] = float("nan")
    torch.save(state, state_path)
    kept = state_path.read_bytes()
    assert run_sft("runs/1", from_resume=1) == 1
    assert "error: the loss at step 2 is not finite (nan)" in capfd.readouterr().err
    assert state_path.read_bytes() == kept


EVALUATED = {"eval_data_path": "runs/data.jsonl", "max_gen_len": 4}


def evaluations_of(folder):
    return [step for step, _, values in metrics_of(folder) if "eval/greedy_accuracy" in values]


def test_evaluations_come_before_the_first_step_at_every_interval_and_after_the_last(home):
    assert run_sft("runs/1", **EVALUATED, eval_interval=4) == 0
    assert evaluations_of(home / "runs" / "1") == [0, 4, 6]
    result = json.loads((home / "runs" / "1" / "result.json").read_text())
    assert result["eval_before"]["eval/greedy_accuracy"] == 0.0
    assert result["eval_after"].keys() == {"eval/greedy_accuracy", "eval/sampled_accuracy", "eval/completion_length"}


def test_evaluating_changes_nothing_in_the_training(home):
    run_sft("runs/with", **EVALUATED, eval_interval=1)
    run_sft("runs/without")
    assert same_weights(weights_of(home / "runs" / "with"), weights_of(home / "runs" / "without"))


def test_stop_at_ends_the_run_in_order_and_a_resume_does_not_go_on(home):
    flags = {**EVALUATED, "eval_interval": 2, "stop_at": "eval/greedy_accuracy<=0.5"}
    assert run_sft("runs/1", **flags) == 0
    result = json.loads((home / "runs" / "1" / "result.json").read_text())
    assert (result["exit_code"], result["steps"], result["total_steps"], result["stopped_early"]) == (0, 0, 6, True)
    assert run_sft("runs/1", **flags, from_resume=1) == 0
    assert evaluations_of(home / "runs" / "1") == [0]


@pytest.mark.parametrize(("at", "trained"), [(0, []), (2, [1, 2])])
def test_a_stop_request_during_an_evaluation_takes_effect_right_after_it(home, monkeypatch, at, trained):
    def evaluate_and_be_stopped(model, tokenizer, run, config):
        if run.step == at:
            os.kill(os.getpid(), signal.SIGTERM)
        return evaluate(model, tokenizer, run, config)

    evaluate = sft.evaluate_answers
    monkeypatch.setattr(sft, "evaluate_answers", evaluate_and_be_stopped)
    flags = {**EVALUATED, "eval_interval": 2}
    assert run_sft("runs/1", **flags) == 3
    result = json.loads((home / "runs" / "1" / "result.json").read_text())
    assert (result["steps"], result["checkpoint_step"]) == (at, at)
    assert result["error"] == f"stopped on request; the checkpoint is at step {at} of 6"
    assert [step for step, _, values in metrics_of(home / "runs" / "1") if "loss" in values] == trained
    monkeypatch.undo()
    monkeypatch.setenv("NIGHTSHIFT_HOME", str(home))
    assert run_sft("runs/1", **flags, from_resume=1) == 0
    assert run_sft("runs/2", **flags) == 0
    assert metrics_of(home / "runs" / "1") == metrics_of(home / "runs" / "2"), "no evaluation is repeated"


def test_a_resume_repeats_no_evaluation_and_misses_none(home):
    run_sft("runs/1", **EVALUATED, eval_interval=2, max_steps=2, lr_schedule="constant")
    run_sft("runs/1", **EVALUATED, eval_interval=2, lr_schedule="constant", from_resume=1)
    assert evaluations_of(home / "runs" / "1") == [0, 2, 4, 6]
