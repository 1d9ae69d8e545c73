"""PPO runs on a small model: what they learn, record and refuse. A rollout serves four steps, a snapshot two such."""

import json

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.trainers.grpo_runs import metrics_of, same_weights, save_start, state_of, write_prompts
from tests.trainers.ppo_runs import run_ppo
from tests.trainers.sft_runs import run_sft
from trainers.critic import build_critic
from trainers.records import read_rows

ONE_TOKEN = {"max_gen_len": 1, "kl_coef": 0, "max_steps": 1}  # whitened on its own, its advantage is 0


def gradients(folder) -> dict[str, torch.Tensor]:
    """Return both clipped gradients of a run of one step, from AdamW's first moments (0.1 of them)."""
    state = state_of(folder)
    return {
        name: torch.cat([moment["exp_avg"].flatten() for moment in state[name]["state"].values()]) * 10
        for name in ("optimizer", "critic_optimizer")
    }


@pytest.mark.parametrize("kind", ["qwen3", "moe", "gpt2"])
def test_after_each_refresh_the_ratio_is_exactly_one(home, kind):
    """Reports 2 and 4; the third rollout is the second refresh, the second comes from an older snapshot."""
    save_start(home, kind)
    assert run_ppo("runs/1", max_steps=9) == 0
    values = [step for _, step in metrics_of(home / "runs" / "1")]
    assert [step["ratio_difference"] == 0.0 for step in values] == [True, *[False] * 7, True]
    assert [step["approx_kl"] == 0.0 for step in values] == [True, *[False] * 7, True]
    assert values[0]["kl"] == values[0]["clip_ratio"] == values[8]["clip_ratio"] == 0.0
    assert values[8]["kl"] > 0.0
    assert values[0]["grad_norm"] > 0.01
    assert values[0]["critic_grad_norm"] > 0.01
    assert max(step["sampling_logp_difference"] for step in values) <= 1e-4, "the snapshot itself sampled"


def test_how_a_step_is_cut_into_micro_batches_changes_neither_losses_nor_gradients(start):
    """Reports 13 and 14; the micro-batches are also padded to other widths."""
    write_prompts(start / "data.jsonl", ["07+38", "What is 12+30?", "1", "A prompt much longer than the others"])
    found = []
    for size in (4, 2, 1):
        split = {"batch_size": size, "mini_batch_size": size, "accumulation_steps": 4 // size}
        assert run_ppo(f"runs/{size}", **split, max_steps=1) == 0
        found.append((metrics_of(start / str(size))[0][1], gradients(start / str(size))))
    whole, whole_gradients = found[0]
    for values, cut_gradients in found[1:]:
        for name in ("loss", "value_loss", "entropy", "reward", "value/mean", "explained_variance"):
            assert values[name] == pytest.approx(whole[name], abs=1e-5)
        for name, gradient in cut_gradients.items():
            assert whole_gradients[name].abs().max() > 1e-3
            assert (gradient - whole_gradients[name]).abs().max() < 1e-5


def test_an_off_policy_step_has_the_losses_worked_out_by_hand(start):
    """Three prompts, two parts: the second pass's first step learns from two completions of five tokens or so."""
    write_prompts(start / "data.jsonl", ["07+38", "What is 12+30?", "1"])
    flags = {"kl_coef": 0.5, "temperature": 0.7, "reward_weights": "answer=0", "critic_learning_rate": 0.03}
    assert run_ppo("runs/1", **flags, max_steps=2) == 0
    state = state_of(start / "1")
    assert run_ppo("runs/1", **flags, max_steps=3, from_resume=1) == 0
    policy = AutoModelForCausalLM.from_pretrained(start / "start" / "model")
    critic = build_critic(policy)
    policy.load_state_dict(state["model"])
    critic.load_state_dict(state["critic"])
    losses, value_losses, log_ratios = [], [], []
    for batch in state["extra"][0]["batches"]:
        if batch["part"] != 0:
            continue
        rollout = batch["rollout"]
        length = rollout["completion_ids"].shape[1]
        inputs = {
            "input_ids": rollout["sequence_ids"],
            "attention_mask": rollout["attention_mask"],
            "position_ids": (rollout["attention_mask"].cumsum(-1) - 1).clamp(min=0),
        }
        with torch.no_grad():
            logits = policy(**inputs).logits[:, -length - 1 : -1] / 0.7
            values = critic(**inputs).logits[:, -length - 1 : -1, 0]  # [n, T]
        logps = logits.log_softmax(-1).gather(-1, rollout["completion_ids"][..., None]).squeeze(-1)  # [n, T]
        for row, column in rollout["completion_mask"].nonzero().tolist():
            log_ratio = float(logps[row, column] - batch["old_per_token_logps"][row, column])
            away = float(batch["ref_per_token_logps"][row, column] - logps[row, column])
            ratio, kl = torch.tensor(log_ratio).exp().item(), torch.tensor(away).exp().item() - away - 1
            advantage = float(batch["advantages"][row, column])
            losses.append(0.5 * kl - min(ratio * advantage, min(max(ratio, 0.9), 1.1) * advantage))
            value, old = float(values[row, column]), float(batch["old_values"][row, column])
            target, clipped = float(batch["returns"][row, column]), old + min(max(value - old, -0.2), 0.2)
            value_losses.append(0.5 * max((value - target) ** 2, (clipped - target) ** 2))
            log_ratios.append(log_ratio)
    values = metrics_of(start / "1")[2][1]
    assert values["loss"] == pytest.approx(sum(losses) / len(losses), abs=1e-5)
    assert values["value_loss"] == pytest.approx(sum(value_losses) / len(value_losses), abs=1e-5)
    assert values["approx_kl"] == pytest.approx(sum(0.5 * x * x for x in log_ratios) / len(log_ratios), abs=1e-5)
    assert values["clip_ratio"] > 0.0


def test_an_early_stop_skips_the_rest_of_the_rollout_without_step_momentum_or_decay(start):
    flags = {"early_stop_kl": 1e-9, "weight_decay": 1, "update_old_actor_freq": 1}
    assert run_ppo("runs/one", **flags, max_steps=1) == 0
    assert run_ppo("runs/four", **flags, max_steps=4) == 0
    one, four = state_of(start / "one"), state_of(start / "four")
    for part in ("model", "critic"):
        assert all(torch.equal(one[part][name], four[part][name]) for name in one[part])
    for part in ("optimizer", "critic_optimizer"):
        assert [float(moment["step"]) for moment in four[part]["state"].values()] == [1.0] * len(one[part]["state"])
    values = [step for _, step in metrics_of(start / "four")]
    assert [step["early_stopped"] for step in values] == [0.0, 1.0, 2.0, 3.0]
    assert ["grad_norm" in step for step in values] == [True, False, False, False]
    assert ["loss" in step for step in values] == [True, True, False, False]
    assert values[1]["approx_kl"] > 1e-9


def test_a_learning_rate_that_the_early_stop_never_lets_through_is_told_once(start):
    """Three rollouts from one snapshot: the first step moves away from it, and none of the other eleven is taken."""
    assert run_ppo("runs/1", early_stop_kl=1e-9, update_old_actor_freq=3) == 0
    told = [line for line in (start / "1" / "log.txt").read_text().splitlines() if "early stop" in line]
    assert told == [
        "warning: for 10 steps, the early stop has skipped every optimizer step; lower --learning_rate, "
        "--ppo_update_iters or --update_old_actor_freq, or raise --early_stop_kl"
    ]


def test_after_an_early_stop_the_next_rollout_learns_again(start):
    assert run_ppo("runs/1", early_stop_kl=1e-9, update_old_actor_freq=1, max_steps=5) == 0
    last = metrics_of(start / "1")[4][1]
    assert (last["early_stopped"], last["approx_kl"]) == (3.0, 0.0)
    assert last["grad_norm"] > 0.0


def test_a_step_without_a_completion_is_skipped(start):
    """The last rollout of an epoch may be smaller than the steps that its passes have."""
    write_prompts(start / "data.jsonl", ["07+38"])
    assert run_ppo("runs/one", max_steps=1) == 0
    assert run_ppo("runs/two", max_steps=2) == 0
    assert same_weights(start / "one", start / "two")
    values = metrics_of(start / "two")[1][1]
    assert values["early_stopped"] == 0.0
    assert not {"loss", "grad_norm", "value_loss"} & set(values)


def test_padding_with_the_end_token_changes_nothing(start):
    """Report 21."""
    assert run_ppo("runs/apart", max_steps=5) == 0
    tokenizer = AutoTokenizer.from_pretrained(start / "start" / "model")
    assert tokenizer.pad_token != tokenizer.eos_token
    tokenizer.pad_token = tokenizer.eos_token
    tokenizer.save_pretrained(start / "start" / "model")
    assert run_ppo("runs/equal", max_steps=5) == 0
    assert metrics_of(start / "equal") == metrics_of(start / "apart")
    assert same_weights(start / "equal", start / "apart")


def test_without_advantage_and_kl_the_actor_stays_and_without_weight_the_critic(start):
    write_prompts(start / "data.jsonl", ["07+38"])
    assert run_ppo("runs/1", **ONE_TOKEN, vf_coef=0) == 0
    values = metrics_of(start / "1")[0][1]
    assert values["loss"] == values["grad_norm"] == values["critic_grad_norm"] == 0.0
    assert values["value_loss"] == pytest.approx(0.5 * 0.5**2), "a reward of -0.5 and a critic that expects 0"
    assert "kl" not in values


def test_the_balance_of_the_experts_is_part_of_both_losses(home):
    """Report 42: with nothing else to learn, the balance alone has a gradient."""
    save_start(home, "moe")
    write_prompts(home / "runs" / "data.jsonl", ["07+38"])
    assert run_ppo("runs/1", **ONE_TOKEN, vf_coef=0) == 0
    values = metrics_of(home / "runs" / "1")[0][1]
    assert 0.01 <= values["loss"] < 0.03, "0.01 times a balance that is 1 when the experts share evenly"
    assert values["grad_norm"] > 0.0
    assert values["critic_grad_norm"] > 0.0


def test_experts_are_trained_from_the_script_s_own_weights_and_published_as_such(home):
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "use_moe": 1}
    assert run_sft("runs/sft", use_moe=1, max_steps=1) == 0
    assert run_ppo("runs/1", init_path=None, **size, max_steps=1) == 0
    result = json.loads((home / "runs" / "1" / "result.json").read_text())
    assert result["published"] == "runs/out/ppo_actor_32_moe.pth"


def test_an_evaluation_leaves_the_training_as_it_would_have_been(start):
    evaluated = {"eval_data_path": "runs/data.jsonl", "eval_interval": 3}
    assert run_ppo("runs/plain", max_steps=6) == 0
    assert run_ppo("runs/evaluated", max_steps=6, **evaluated) == 0
    assert same_weights(start / "plain", start / "evaluated")
    assert [step for step, values in metrics_of(start / "evaluated") if "eval/greedy_accuracy" in values] == [0, 3, 6]


def test_a_step_records_its_values_and_its_completions(start):
    assert run_ppo("runs/1", max_steps=1, reward_weights="answer=2", batch_size=6) == 0
    step, values = metrics_of(start / "1")[0]
    assert step == 1
    assert set(values) == {
        "loss",
        "value_loss",
        "learning_rate",
        "critic_learning_rate",
        "grad_norm",
        "critic_grad_norm",
        "reward",
        "reward_std",
        "rewards/length/mean",
        "rewards/repetition/mean",
        "rewards/answer/mean",
        "kl",
        "approx_kl",
        "entropy",
        "clip_ratio",
        "value_clip_ratio",
        "ratio_difference",
        "value/mean",
        "value/returns",
        "explained_variance",
        "early_stopped",
        "completions/mean_length",
        "completions/clipped_ratio",
        "completions/mean_terminated_length",
        "sampling_logp_difference",
        "num_tokens",
    }
    samples = read_rows(start / "1" / "samples.jsonl")
    assert [len(sample["completions"]) for sample in samples] == [1, 1, 1, 1], "four of the six prompts"
    assert set(samples[0]["completions"][0]) == {"text", "rewards", "reward", "advantage", "length", "truncated"}
    earned = sorted((sample["completions"][0]["reward"], sample["completions"][0]["advantage"]) for sample in samples)
    assert earned[0][0] < earned[-1][0]
    assert earned[0][1] < 0.0 < earned[-1][1], "a new critic expects nothing: what earned more is ahead"


def test_the_log_speaks_as_the_scripts_do(start):
    assert run_ppo("runs/1", max_steps=2) == 0
    lines = [line for line in (start / "1" / "log.txt").read_text().splitlines() if line.startswith("Epoch")]
    assert lines[0].startswith("Epoch:[1/1](1/12), ")
    names = ["reward", "kl", "loss", "value_loss", "avg_len", "lr", "critic_lr"]
    assert [part.split(": ")[0] for part in lines[0].split(", ")[1:8]] == names


@pytest.mark.parametrize(("steps", "lower"), [(4, "learning_rate"), (3, "critic_learning_rate")])
def test_a_loss_that_is_not_finite_ends_the_run_with_its_step(start, capfd, steps, lower):
    """A value that is lost spoils the next rollout's advantages, or this one's value loss."""
    assert run_ppo("runs/1", max_steps=steps) == 0
    state = state_of(start / "1")
    state["critic"]["lm_head.bias"] += float("nan")
    torch.save(state, start / "1" / "checkpoint" / "state.pt")
    assert run_ppo("runs/1", max_steps=5, from_resume=1) == 1
    assert capfd.readouterr().err == f"error: the loss at step {steps + 1} is not finite (nan); lower --{lower}\n"
    assert state_of(start / "1")["step"] == steps


def test_the_reward_rises(start):
    write_prompts(start / "data.jsonl", ["07+38", "1", "What is 12+30?", "9"] * 20)
    flags = {"batch_size": 80, "mini_batch_size": 80, "update_old_actor_freq": 1, "kl_coef": 0, "clip_epsilon": 0.3}
    assert run_ppo("runs/1", **flags, epochs=6, learning_rate=0.02, critic_learning_rate=0.005) == 0
    rewards = [values["reward"] for _, values in metrics_of(start / "1")]
    assert rewards[-1] > rewards[0] + 0.3
