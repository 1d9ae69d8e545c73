import json
import math
import os
import subprocess
import sys

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from dataset.pretraining import TextRows
from tests.trainers.grpo_runs import TOKENIZER, metrics_of, same_weights, save_start
from tests.trainers.pretrain_runs import TEXTS, argv, run_pretrain, write_texts
from trainers.paths import REPOSITORY

WHOLE = {"lr_schedule": "constant"}  # the first part of a run does not know of the second


@pytest.fixture(autouse=True)
def texts(home):
    write_texts(home / "runs" / "texts.jsonl", TEXTS)
    return home / "runs" / "texts.jsonl"


def mean_loss(model, texts):
    """Return the mean over all tokens of one text after the other, by transformers' own loss."""
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    losses, counts = [], []
    for text in texts:
        ids = [tokenizer.bos_token_id, *tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
        with torch.no_grad():
            losses.append(model(torch.tensor([ids]), labels=torch.tensor([ids])).loss.item())
        counts.append(len(ids) - 1)
    return sum(loss * count for loss, count in zip(losses, counts, strict=True)) / sum(counts)


def test_every_token_after_the_first_is_learned_with_the_end_and_without_the_padding(home, texts):
    """The first loss is the mean over the tokens of all four texts, each computed alone and unpadded."""
    save_start(home)
    start = AutoModelForCausalLM.from_pretrained(home / "runs" / "start" / "model")
    assert run_pretrain("runs/1", init_path="runs/start/model", batch_size=10, max_steps=1) == 0
    [(_, values)] = metrics_of(home / "runs" / "1")
    assert values["loss"] == pytest.approx(mean_loss(start, TEXTS), rel=1e-5)


def test_a_fresh_model_is_the_default_and_learns_the_texts(home):
    assert run_pretrain("runs/1", epochs=40, batch_size=10, lr_schedule="constant") == 0
    result = json.loads((home / "runs" / "1" / "result.json").read_text())
    even = math.log(len(AutoTokenizer.from_pretrained(TOKENIZER)))
    assert result["first"]["loss"] == pytest.approx(even, rel=0.05)
    assert result["last"]["loss"] < 0.5
    assert result["published"] == "runs/out/pretrain_32.pth"


@pytest.mark.parametrize("flags", [{}, {"use_moe": 1}, {"accumulation_steps": 2, "batch_size": 2}])
def test_three_steps_and_a_resume_equal_six_steps(home, flags):
    assert run_pretrain("runs/whole", **flags, **WHOLE) == 0
    assert run_pretrain("runs/parts", **flags, **WHOLE, max_steps=3) == 0
    assert run_pretrain("runs/parts", **flags, **WHOLE, from_resume=1) == 0
    whole, parts = home / "runs" / "whole", home / "runs" / "parts"
    assert [step for step, _ in metrics_of(parts)] == [1, 2, 3, 4, 5, 6]
    assert metrics_of(parts) == metrics_of(whole)
    assert same_weights(parts, whole)


def test_a_mixture_of_experts_is_published_under_its_name(home):
    assert run_pretrain("runs/1", use_moe=1, max_steps=1) == 0
    assert (home / "runs" / "out" / "pretrain_32_moe.pth").exists()


def test_the_loss_does_not_depend_on_the_micro_batches(home):
    flags = {"max_steps": 1}
    assert run_pretrain("runs/whole", **flags) == 0
    assert run_pretrain("runs/cut", **flags, batch_size=1, accumulation_steps=4) == 0
    (_, whole), (_, cut) = metrics_of(home / "runs" / "whole")[0], metrics_of(home / "runs" / "cut")[0]
    assert cut["loss"] == pytest.approx(whole["loss"], rel=1e-5)
    assert cut["grad_norm"] == pytest.approx(whole["grad_norm"], rel=1e-4)


def test_a_run_killed_after_a_checkpoint_ends_with_the_weights_of_one_that_was_not(home):
    flags = {**WHOLE, "save_interval": 1, "epochs": 40}
    process = subprocess.Popen(
        [sys.executable, "-m", "trainers", *argv("runs/killed", **flags)],
        cwd=REPOSITORY,
        text=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "NIGHTSHIFT_HOME": str(home), "OMP_NUM_THREADS": "1"},
    )
    while not process.stdout.readline().startswith("Epoch:[2/"):
        assert process.poll() is None
    process.kill()
    process.communicate()
    saved = json.loads((home / "runs" / "killed" / "checkpoint" / "meta.json").read_text())["step"]
    flags["epochs"] = saved // 3 + 2
    assert run_pretrain("runs/killed", **flags, from_resume=1) == 0
    assert run_pretrain("runs/whole", **flags) == 0
    assert metrics_of(home / "runs" / "killed") == metrics_of(home / "runs" / "whole")
    assert same_weights(home / "runs" / "killed", home / "runs" / "whole")


def test_a_resume_after_the_last_step_changes_nothing(home):
    run_pretrain("runs/1", epochs=1)
    before = metrics_of(home / "runs" / "1")
    state = (home / "runs" / "1" / "checkpoint" / "state.pt").read_bytes()
    assert run_pretrain("runs/1", epochs=1, from_resume=1) == 0
    assert metrics_of(home / "runs" / "1") == before
    assert (home / "runs" / "1" / "checkpoint" / "state.pt").read_bytes() == state


@pytest.mark.parametrize("kind", ["qwen3", "moe", "gpt2"])
def test_the_held_out_loss_is_the_mean_over_tokens_without_dropout(home, kind):
    save_start(home, kind)
    write_texts(home / "runs" / "held_out.jsonl", [*TEXTS[:5], "not one of the first five"])
    flags = {"init_path": "runs/start/model", "max_seq_len": 64, "eval_data_path": "runs/held_out.jsonl"}
    assert run_pretrain("runs/1", **flags, eval_size=5, batch_size=2, max_steps=2) == 0
    before, _, _, after = (values for _, values in metrics_of(home / "runs" / "1"))
    start = AutoModelForCausalLM.from_pretrained(home / "runs" / "start" / "model").eval()
    end = AutoModelForCausalLM.from_pretrained(home / "runs" / "1" / "model").eval()
    assert before["eval/loss"] == pytest.approx(mean_loss(start, TEXTS[:5]), rel=1e-5)
    assert after["eval/loss"] == pytest.approx(mean_loss(end, TEXTS[:5]), rel=1e-5)
    assert after["eval/perplexity"] == pytest.approx(math.exp(after["eval/loss"]))
    assert after["eval/loss"] < before["eval/loss"]


def test_evaluating_changes_nothing_in_the_training(home):
    save_start(home, "gpt2")  # with dropout, which draws random numbers
    flags = {"init_path": "runs/start/model", "max_seq_len": 64, "max_steps": 3}
    assert run_pretrain("runs/with", **flags, eval_data_path="runs/texts.jsonl", eval_interval=1) == 0
    assert run_pretrain("runs/without", **flags) == 0
    assert same_weights(home / "runs" / "with", home / "runs" / "without")


def test_a_run_ends_early_once_the_held_out_loss_is_low_enough(home):
    flags = {"eval_data_path": "runs/texts.jsonl", "eval_interval": 3, "stop_at": "eval/perplexity<=300"}
    assert run_pretrain("runs/1", **flags, epochs=10) == 0
    result = json.loads((home / "runs" / "1" / "result.json").read_text())
    assert (result["steps"], result["total_steps"], result["stopped_early"]) == (3, 30, True)


def test_texts_that_are_too_long_are_cut_and_still_end(home):
    rows = TextRows(home / "runs" / "texts.jsonl", AutoTokenizer.from_pretrained(TOKENIZER), 4)
    assert [len(rows[index]["input_ids"]) for index in range(10)] == [4] * 10
    assert {rows[index]["labels"][-1] for index in range(10)} == {2}  # <|im_end|>
    assert run_pretrain("runs/1", max_seq_len=4, max_steps=1) == 0


def test_a_tokenizer_whose_padding_is_its_end_token_trains_alike(home):
    save_start(home)
    flags = {"init_path": "runs/start/model", "max_steps": 2}
    assert run_pretrain("runs/own", **flags) == 0
    settings = home / "runs" / "start" / "model" / "tokenizer_config.json"
    settings.write_text(settings.read_text().replace('"pad_token": "<|endoftext|>"', '"pad_token": "<|im_end|>"'))
    assert AutoTokenizer.from_pretrained(settings.parent).pad_token_id == 2
    assert run_pretrain("runs/shared", **flags) == 0
    assert metrics_of(home / "runs" / "own") == metrics_of(home / "runs" / "shared")


def test_numbers_that_are_not_finite_end_the_run_with_the_step(home, capfd):
    assert run_pretrain("runs/1", max_steps=1) == 0
    path = home / "runs" / "1" / "checkpoint" / "state.pt"
    state = torch.load(path, weights_only=True)
    state["model"]["model.norm.weight"][0] = float("nan")
    torch.save(state, path)
    assert run_pretrain("runs/1", from_resume=1) == 1
    assert "error: the loss at step 2 is not finite (nan)" in capfd.readouterr().err
