"""GRPO runs on a small model: what they learn, record and refuse."""

import json

import pytest
import torch
from transformers import AutoModelForCausalLM

from tests.trainers.grpo_runs import (
    first_gradient,
    metrics_of,
    run_grpo,
    same_weights,
    save_start,
    state_of,
    write_prompts,
)
from trainers.records import read_rows


@pytest.mark.parametrize("kind", ["qwen3", "moe", "gpt2"])
@pytest.mark.parametrize("loss_type", ["grpo", "cispo"])
def test_before_the_first_update_the_ratio_is_one_and_the_kl_zero_and_there_is_a_gradient(home, kind, loss_type):
    save_start(home, kind)
    assert run_grpo("runs/1", loss_type=loss_type, max_steps=2) == 0
    (_, first), (_, second) = metrics_of(home / "runs" / "1")
    assert first["kl"] == 0.0
    assert first["clip_ratio"] == 0.0
    assert first["sampling_logp_difference"] <= 1e-4
    assert first["grad_norm"] > 0.01
    assert second["kl"] > 0.0


def test_grpo_and_cispo_take_the_same_first_step(start):
    run_grpo("runs/grpo", loss_type="grpo", max_steps=1)
    run_grpo("runs/cispo", loss_type="cispo", max_steps=1)
    assert (first_gradient(start / "grpo") - first_gradient(start / "cispo")).abs().max() < 1e-6


def test_how_a_batch_is_cut_into_micro_batches_changes_neither_loss_nor_gradient(start):
    """Reports 13 and 14; the micro-batches are also padded to other widths."""
    write_prompts(start / "data.jsonl", ["07+38", "What is 12+30?", "1", "A prompt much longer than the others"])
    gradients, losses = [], []
    for batch_size in (4, 2, 1):
        run_dir = f"runs/{batch_size}"
        assert (
            run_grpo(run_dir, batch_size=batch_size, accumulation_steps=4 // batch_size, max_steps=1, loss_type="cispo")
            == 0
        )
        gradients.append(first_gradient(start / str(batch_size)))
        losses.append(metrics_of(start / str(batch_size))[0][1]["loss"])
    assert losses[1:] == [pytest.approx(losses[0], abs=1e-5)] * 2
    assert gradients[0].abs().max() > 1e-3
    for gradient in gradients[1:]:
        assert (gradient - gradients[0]).abs().max() < 1e-5


def test_an_off_policy_update_has_the_loss_and_the_kl_worked_out_by_hand(start):
    """Three prompts in micro-batches of two and one; the checkpoint between two updates holds all that is needed."""
    write_prompts(start / "data.jsonl", ["07+38", "What is 12+30?", "1"])
    flags = {"num_iterations": 2, "batch_size": 2, "accumulation_steps": 2, "beta": 0.5, "temperature": 0.7}
    assert run_grpo("runs/1", **flags, max_steps=1) == 0
    state = state_of(start / "1")
    assert run_grpo("runs/1", **flags, max_steps=2, from_resume=1) == 0
    model = AutoModelForCausalLM.from_pretrained(start / "start" / "model")
    model.load_state_dict(state["model"])
    losses, kls = [], []
    for batch in state["extra"][0]["batches"]:
        ids, mask = batch["rollout"]["completion_ids"], batch["rollout"]["completion_mask"].bool()  # [n, T]
        full = batch["rollout"]["attention_mask"]
        logits = (
            model(
                input_ids=batch["rollout"]["sequence_ids"],
                attention_mask=full,
                position_ids=(full.cumsum(-1) - 1).clamp(min=0),
            ).logits.detach()
            / 0.7
        )
        logps = logits[:, -ids.shape[1] - 1 : -1].log_softmax(-1).gather(-1, ids[..., None]).squeeze(-1)  # [n, T]
        ratio = (logps - batch["old_per_token_logps"]).exp()
        kl = (batch["ref_per_token_logps"] - logps).exp() - (batch["ref_per_token_logps"] - logps) - 1
        rewards = batch["rewards"]["total"].view(-1, 4)
        advantages = (rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, unbiased=False, keepdim=True) + 1e-4)
        for row, advantage in enumerate(advantages.flatten()):
            gain = torch.min(ratio[row] * advantage, ratio[row].clamp(0.8, 1.2) * advantage)
            losses.append((0.5 * kl[row] - gain)[mask[row]].mean())
            kls += kl[row][mask[row]].tolist()
    values = metrics_of(start / "1")[1][1]
    assert len(losses) == 12
    assert values["loss"] == pytest.approx(float(sum(losses) / 12), abs=1e-5)
    assert values["kl"] == pytest.approx(sum(kls) / len(kls), abs=1e-5)
    assert values["kl"] > 0.01, "far enough from the reference for the direction of the KL to matter"


def test_two_updates_learn_from_one_rollout_and_the_second_is_off_policy(start):
    assert run_grpo("runs/1", num_iterations=2, max_steps=4) == 0
    values = [step for _, step in metrics_of(start / "1")]
    assert [value["num_tokens"] for value in values[::2]] == [value["num_tokens"] for value in values[1::2]]
    assert values[2]["num_tokens"] > values[1]["num_tokens"]
    assert values[0]["reward"] == values[1]["reward"]
    assert values[1]["clip_ratio"] > 0.0
    assert values[2]["sampling_logp_difference"] <= 1e-4, "a new rollout comes from the updated policy"


def test_an_evaluation_leaves_the_training_as_it_would_have_been(start):
    evaluated = {"eval_data_path": "runs/data.jsonl", "eval_interval": 1}
    assert run_grpo("runs/plain", max_steps=3) == 0
    assert run_grpo("runs/evaluated", max_steps=3, **evaluated) == 0
    assert same_weights(start / "plain", start / "evaluated")
    evaluations = [
        (step, set(values)) for step, values in metrics_of(start / "evaluated") if "eval/greedy_accuracy" in values
    ]
    names = {"eval/greedy_accuracy", "eval/sampled_accuracy", "eval/completion_length"}
    assert evaluations == [(0, names), (1, names), (2, names), (3, names)]


def test_a_met_target_ends_the_run_early(start):
    assert run_grpo("runs/1", eval_data_path="runs/data.jsonl", eval_interval=2, stop_at="eval/greedy_accuracy<=1") == 0
    result = json.loads((start / "1" / "result.json").read_text())
    assert (result["steps"], result["stopped_early"]) == (0, True)


def test_without_a_difference_in_reward_and_without_kl_nothing_moves(start):
    """Report 26."""
    assert run_grpo("runs/1", reward_weights="length=0,repetition=0", beta=0, max_steps=1) == 0
    values = metrics_of(start / "1")[0][1]
    assert values["frac_reward_zero_std"] == 1.0
    assert values["grad_norm"] == 0.0
    assert "kl" not in values


def test_the_balance_of_the_experts_is_part_of_the_loss(home):
    """Report 42: with nothing else to learn, the loss is the balance alone, and it has a gradient."""
    save_start(home, "moe")
    assert run_grpo("runs/1", reward_weights="length=0,repetition=0", beta=0, max_steps=1) == 0
    values = metrics_of(home / "runs" / "1")[0][1]
    assert 0.01 <= values["loss"] < 0.02, "0.01 times a balance that is 1 when the experts share evenly"
    assert values["grad_norm"] > 0.0


def test_without_a_difference_in_reward_the_kl_still_pulls_back_to_the_reference(start):
    """Report 26, the documented choice: weight decay moved the policy away, and only the KL has a gradient."""
    assert (
        run_grpo(
            "runs/1", reward_weights="length=0,repetition=0", beta=0.5, max_steps=2, learning_rate=0.1, weight_decay=1
        )
        == 0
    )
    (_, first), (_, second) = metrics_of(start / "1")
    assert first["grad_norm"] < 1e-6
    assert second["grad_norm"] > 1e-4
    assert second["loss"] == pytest.approx(0.5 * second["kl"], rel=0.3), "means over completions and over tokens differ"


def test_a_prompt_that_the_chat_template_refuses_is_named_by_its_row(start, capfd):
    (start / "start" / "model" / "chat_template.jinja").write_text(
        "{% for m in messages %}{% if m.content == '99+01' %}{{ raise_exception('not this one') }}{% endif %}"
        "{{ m.content }}{% endfor %}"
    )
    assert run_grpo("runs/1", strict=1) == 2
    assert capfd.readouterr().err == (
        "error: data.jsonl, row 3: the tokenizer's chat template refuses it: not this one\n"
    )


def test_a_step_records_trl_s_names_and_its_completions(start):
    assert run_grpo("runs/1", max_steps=1, reward_weights="answer=2", batch_size=6) == 0
    step, values = metrics_of(start / "1")[0]
    assert step == 1
    assert set(values) == {
        "loss",
        "learning_rate",
        "grad_norm",
        "reward",
        "reward_std",
        "frac_reward_zero_std",
        "rewards/length/mean",
        "rewards/repetition/mean",
        "rewards/answer/mean",
        "kl",
        "entropy",
        "clip_ratio",
        "completions/mean_length",
        "completions/clipped_ratio",
        "completions/mean_terminated_length",
        "sampling_logp_difference",
        "num_tokens",
    }
    samples = read_rows(start / "1" / "samples.jsonl")
    assert [len(sample["completions"]) for sample in samples] == [4, 4, 4, 4], "four of the six prompts"
    assert all(sample["kind"] == "train" and sample["prompt"].endswith("<|im_start|>assistant\n") for sample in samples)
    completion = samples[0]["completions"][0]
    assert set(completion) == {"text", "rewards", "reward", "advantage", "length", "truncated"}
    rewards = completion["rewards"]
    assert completion["reward"] == pytest.approx(rewards["length"] + rewards["repetition"] + 2 * rewards["answer"])


def test_the_reward_rises(start):
    assert run_grpo("runs/1", epochs=8, batch_size=10, num_generations=16, beta=0, learning_rate=0.01) == 0
    rewards = [values["reward"] for _, values in metrics_of(start / "1")]
    assert sum(rewards[-3:]) / 3 > sum(rewards[:2]) / 2 + 0.2


def test_a_missing_reward_model_is_one_line_with_the_ways_out(start, capfd):
    assert run_grpo("runs/1", reward_model_path="runs/nowhere") == 2
    assert capfd.readouterr().err == (
        f"error: --reward_model_path runs/nowhere: looked in {start / 'nowhere'} and found nothing there; train one "
        "and point --reward_model_path to its model/ folder, point it to one you have, or say none for rule rewards "
        "only\n"
    )


def test_a_missing_reward_model_that_has_no_weight_is_not_looked_for(start):
    assert run_grpo("runs/1", reward_model_path="runs/nowhere", reward_weights="reward_model=0", max_steps=1) == 0


def test_completions_beyond_the_model_s_positions_are_refused_before_training(home, capfd):
    save_start(home, "gpt2")
    assert run_grpo("runs/1", max_gen_len=63) == 2
    assert capfd.readouterr().err == (
        "error: --max_seq_len 66 and --max_gen_len 63: up to 129 tokens, and the model has 128 positions; lower "
        "one of them\n"
    )


def test_the_log_speaks_as_the_scripts_do(start):
    assert run_grpo("runs/1", max_steps=2) == 0
    lines = [line for line in (start / "1" / "log.txt").read_text().splitlines() if line.startswith("Epoch")]
    assert len(lines) == 2
    names = ["reward", "kl", "loss", "avg_len", "lr"]
    assert lines[0].startswith("Epoch:[1/1](1/5), ")
    assert [part.split(": ")[0] for part in lines[0].split(", ")[1:6]] == names
