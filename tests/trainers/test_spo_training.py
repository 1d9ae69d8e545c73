"""SPO runs on a small model: what they learn, record and refuse."""

import json

import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.trainers.grpo_runs import first_gradient, metrics_of, same_weights, save_start, state_of, write_prompts
from tests.trainers.spo_runs import run_spo
from trainers.attempt import run_attempt
from trainers.cli import parse_command
from trainers.records import read_rows

NOTHING_TO_LEARN = {"reward_weights": "length=0,repetition=0", "beta": 0, "max_steps": 1}


@pytest.mark.parametrize("kind", ["qwen3", "moe", "gpt2"])
@pytest.mark.parametrize("value_tracker", ["global", "prompt"])
def test_before_the_first_update_the_ratio_is_one_and_the_kl_zero_and_there_is_a_gradient(home, kind, value_tracker):
    save_start(home, kind)
    assert run_spo("runs/1", value_tracker=value_tracker, max_steps=2) == 0
    (_, first), (_, second) = metrics_of(home / "runs" / "1")
    assert first["kl"] == 0.0
    assert first["clip_ratio"] == 0.0
    assert first["sampling_logp_difference"] <= 1e-4
    assert first["grad_norm"] > 0.01
    assert second["kl"] > 0.0


@pytest.mark.parametrize("value_tracker", ["global", "prompt"])
def test_how_a_batch_is_cut_into_micro_batches_changes_neither_loss_nor_gradient(start, value_tracker):
    write_prompts(start / "data.jsonl", ["07+38", "What is 12+30?", "1", "A prompt much longer than the others"])
    gradients, losses = [], []
    for size in (4, 2, 1):
        flags = {"batch_size": size, "accumulation_steps": 4 // size, "value_tracker": value_tracker}
        assert run_spo(f"runs/{size}", **flags, max_steps=1) == 0
        gradients.append(first_gradient(start / str(size)))
        losses.append(metrics_of(start / str(size))[0][1]["loss"])
    assert losses[1:] == [pytest.approx(losses[0], abs=1e-5)] * 2
    assert gradients[0].abs().max() > 1e-3
    for gradient in gradients[1:]:
        assert (gradient - gradients[0]).abs().max() < 1e-5


def test_an_off_policy_update_has_the_loss_worked_out_by_hand(start):
    """Three prompts in micro-batches of two and one; the checkpoint between two updates holds all that is needed."""
    write_prompts(start / "data.jsonl", ["07+38", "What is 12+30?", "1"])
    flags = {"num_iterations": 2, "beta": 0.5, "temperature": 0.7, "value_tracker": "prompt"}
    assert run_spo("runs/1", **flags, max_steps=1) == 0
    state = state_of(start / "1")
    assert run_spo("runs/1", **flags, max_steps=2, from_resume=1) == 0
    model = AutoModelForCausalLM.from_pretrained(start / "start" / "model")
    model.load_state_dict(state["model"])
    advantages = state["extra"][0]["expected"]["advantages"].tolist()
    assert sum(advantages) == pytest.approx(0.0, abs=1e-5)
    losses = []
    for batch in state["extra"][0]["batches"]:
        rollout = batch["rollout"]
        ids, mask, full = rollout["completion_ids"], rollout["completion_mask"].bool(), rollout["attention_mask"]
        positions = (full.cumsum(-1) - 1).clamp(min=0)
        logits = model(input_ids=rollout["sequence_ids"], attention_mask=full, position_ids=positions).logits.detach()
        shifted = (logits / 0.7)[:, -ids.shape[1] - 1 : -1]
        logps = shifted.log_softmax(-1).gather(-1, ids[..., None]).squeeze(-1)  # [n, T]
        ratio = (logps - batch["old_per_token_logps"]).exp()
        difference = batch["ref_per_token_logps"] - logps
        kl = difference.exp() - difference - 1
        for row in range(len(ids)):
            advantage = advantages[len(losses)]
            gain = (ratio[row] * advantage).minimum(ratio[row].clamp(0.8, 1.2) * advantage)
            losses.append(float((0.5 * kl[row] - gain)[mask[row]].mean()))
    assert len(losses) == 3
    assert metrics_of(start / "1")[1][1]["loss"] == pytest.approx(sum(losses) / 3, abs=1e-5)


def test_between_two_updates_the_micro_batches_may_be_cut_otherwise(start):
    flags = {"num_iterations": 2, "value_tracker": "prompt"}
    assert run_spo("runs/whole", **flags, max_steps=2) == 0
    assert run_spo("runs/1", **flags, max_steps=1) == 0
    assert run_spo("runs/1", **flags, max_steps=2, from_resume=1, batch_size=4, accumulation_steps=1) == 0
    whole, parts = (metrics_of(start / name)[1][1]["loss"] for name in ("whole", "1"))
    assert parts == pytest.approx(whole, abs=1e-5)


def test_a_batch_of_one_completion_is_refused_for_the_prompt_tracker(start, capfd):
    assert run_spo("runs/1", value_tracker="prompt", batch_size=1, accumulation_steps=1) == 2
    assert capfd.readouterr().err == (
        "error: --value_tracker prompt compares the completions of an optimizer batch with each other; raise "
        "--batch_size or --accumulation_steps above 1\n"
    )


def test_two_updates_learn_from_one_rollout_and_the_tracker_from_it_once(start):
    assert run_spo("runs/1", num_iterations=2, max_steps=4) == 0
    values = [step for _, step in metrics_of(start / "1")]
    assert values[0]["reward"] == values[1]["reward"]
    assert values[1]["clip_ratio"] > 0.0
    assert (values[0]["value/alpha"], values[0]["value/beta"]) == (1.0, 1.0), "not yet"
    assert values[1]["value/alpha"] + values[1]["value/beta"] == pytest.approx(0.9 * 2 + 1)
    assert values[2]["value/alpha"] == values[1]["value/alpha"]


def test_the_baseline_is_the_value_before_the_update(start):
    """The first four completions are compared with the middle of the scale, 0 for lengths of -0.5 or 0.5."""
    assert run_spo("runs/1", max_steps=2) == 0
    (_, first), (_, second) = metrics_of(start / "1")
    assert first["value/mean"] == 0.0
    assert first["advantages/mean"] == pytest.approx(first["reward"], abs=1e-6)
    assert second["value/mean"] == pytest.approx(first["value/alpha"] / (0.9 * 2 + 1) - 0.5)
    assert second["advantages/mean"] == pytest.approx(second["reward"] - second["value/mean"], abs=1e-6)


def test_the_prompt_tracker_whitens_and_estimates_first(start):
    assert run_spo("runs/1", value_tracker="prompt", offline_samples=4, max_steps=2) == 0
    _, first = metrics_of(start / "1")[0]
    assert first["advantages/mean"] == pytest.approx(0.0, abs=1e-6)
    assert first["advantages/std"] == pytest.approx(1.0, abs=1e-5)
    assert first["rho"] == pytest.approx(0.96), "nothing has been visited before"
    lines = (start / "1" / "log.txt").read_text().splitlines()
    estimates = [line for line in lines if line.startswith("estimated ")]
    assert len(estimates) == 1
    assert estimates[0].startswith("estimated 10 of 10 prompts, offline_samples 4; mean value 0.")
    assert state_of(start / "1")["tracker"]["estimated"] == 10


def test_a_revisited_prompt_remembers_less_when_the_policy_has_moved(start):
    """Four prompts at a time of four: every step visits all of them."""
    write_prompts(start / "data.jsonl", ["07+38", "What is 12+30?", "1", "2"])
    assert run_spo("runs/1", value_tracker="prompt", learning_rate=0.01, epochs=2) == 0
    (_, first), (_, second) = metrics_of(start / "1")
    assert first["rho"] == pytest.approx(0.96)
    assert 0.875 <= second["rho"] < 0.95
    assert second["value/visited"] == 1.0


def test_without_a_difference_in_reward_and_without_kl_the_prompt_tracker_moves_nothing(start):
    assert run_spo("runs/1", value_tracker="prompt", **NOTHING_TO_LEARN) == 0
    assert metrics_of(start / "1")[0][1]["grad_norm"] == 0.0


def test_the_balance_of_the_experts_is_part_of_the_loss(home):
    save_start(home, "moe")
    assert run_spo("runs/1", value_tracker="prompt", use_moe=1, **NOTHING_TO_LEARN) == 0
    values = metrics_of(home / "runs" / "1")[0][1]
    assert 0.01 <= values["loss"] < 0.02, "0.01 times a balance that is 1 when the experts share evenly"
    assert values["grad_norm"] > 0.0
    assert json.loads((home / "runs" / "1" / "result.json").read_text())["exit_code"] == 0


def test_pad_may_be_the_end_token(start):
    folder = start / "start" / "model"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.pad_token = tokenizer.eos_token
    tokenizer.save_pretrained(folder)
    assert run_spo("runs/1", value_tracker="prompt", max_steps=2, epochs=2) == 0
    assert metrics_of(start / "1")[0][1]["sampling_logp_difference"] <= 1e-4


COMMON = {
    *("loss", "learning_rate", "grad_norm", "reward", "reward_std", "rewards/length/mean", "rewards/repetition/mean"),
    *("rewards/answer/mean", "kl", "entropy", "clip_ratio", "completions/mean_length", "completions/clipped_ratio"),
    *("completions/mean_terminated_length", "sampling_logp_difference", "num_tokens", "value/mean"),
    *("advantages/mean", "advantages/std", "rho"),
}


@pytest.mark.parametrize(
    ("value_tracker", "own"),
    [
        ("global", {"value/alpha", "value/beta"}),
        ("prompt", {"value/effective_n", "value/all_prompts", "value/visited"}),
    ],
)
def test_a_step_records_its_names_and_its_completions(start, value_tracker, own):
    flags = {"value_tracker": value_tracker, "reward_weights": "answer=2", "batch_size": 6}
    assert run_spo("runs/1", max_steps=1, **flags) == 0
    _, values = metrics_of(start / "1")[0]
    assert set(values) == COMMON | own
    samples = read_rows(start / "1" / "samples.jsonl")
    assert [len(sample["completions"]) for sample in samples] == [1, 1, 1, 1], "four of the ten prompts"
    names = {"text", "rewards", "reward", "advantage", "baseline", "length", "truncated"}
    assert all(set(sample["completions"][0]) == names for sample in samples)


def test_an_evaluation_leaves_the_training_as_it_would_have_been(start):
    assert run_spo("runs/plain", max_steps=2) == 0
    assert run_spo("runs/evaluated", max_steps=2, eval_data_path="runs/data.jsonl", eval_interval=1) == 0
    assert same_weights(start / "plain", start / "evaluated")
    evaluated = [step for step, values in metrics_of(start / "evaluated") if "eval/greedy_accuracy" in values]
    assert evaluated == [0, 1, 2]


@pytest.mark.parametrize("value_tracker", ["global", "prompt"])
def test_the_reward_rises(start, value_tracker):
    flags = {"value_tracker": value_tracker, "batch_size": 10, "accumulation_steps": 4, "beta": 0}
    write_prompts(start / "data.jsonl", [f"{number}+1" for number in range(40)])
    assert run_spo("runs/1", epochs=10, learning_rate=0.01, **flags) == 0
    rewards = [values["reward"] for _, values in metrics_of(start / "1")]
    assert sum(rewards[-3:]) / 3 > sum(rewards[:2]) / 2 + 0.2


def test_a_loss_that_is_not_finite_ends_the_run_with_its_step(start, capfd):
    assert run_spo("runs/1", learning_rate=1, grad_clip=1e9, weight_decay=0, max_steps=10, beta=1e30) == 1
    assert "at step 2 is not finite" in capfd.readouterr().err


def test_the_log_speaks_as_the_scripts_do(start):
    assert run_spo("runs/1", max_steps=2) == 0
    lines = [line for line in (start / "1" / "log.txt").read_text().splitlines() if line.startswith("Epoch")]
    assert len(lines) == 2
    names = ["reward", "value", "rho", "kl", "loss", "avg_len", "lr"]
    assert lines[0].startswith("Epoch:[1/1](1/3), ")
    assert [part.split(": ")[0] for part in lines[0].split(", ")[1:8]] == names


def test_the_first_line_of_a_default_run_names_the_seeds_parameters(start):
    assert run_attempt(parse_command(["spo", "--run_dir", "runs/1"])) == 2, "there is no such reward model"
    line = (start / "1" / "log.txt").read_text().splitlines()[0]
    assert "--beta 0.02 --reasoning 1 --reward_model_path ../../internlm2-1_8b-reward" in line
