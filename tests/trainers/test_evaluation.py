import json

import pytest
import torch

from dataset.formats import Prompt
from tests.trainers.grpo_runs import run_grpo, save_start
from trainers.configs import GRPOConfig
from trainers.errors import ConfigurationError
from trainers.evaluation import accuracy, held_out_prompts
from trainers.records import read_rows
from trainers.runtime import reached

SUM = Prompt(messages=[{"role": "user", "content": "07+38="}], answer="045")


def test_accuracy_is_the_share_of_exact_answers():
    answers = [("045", 3, False), ("45", 2, False), ("because</think>045", 9, False), ("", 1, True)]
    assert accuracy([SUM] * 4, answers) == 0.5


@pytest.mark.parametrize(
    ("stop_at", "value", "met"),
    [
        ("eval/sampled_accuracy>=0.35", 0.35, True),
        ("eval/sampled_accuracy>=0.35", 0.349, False),
        ("eval/sampled_accuracy<=0.35", 0.35, True),
        ("eval/sampled_accuracy<=0.35", 0.351, False),
        (None, 1.0, False),
    ],
)
def test_a_target_is_met_at_its_bound(stop_at, value, met):
    assert reached(stop_at, {"eval/sampled_accuracy": value}) is met


def test_a_metric_that_was_not_measured_meets_no_target():
    assert not reached("eval/greedy_accuracy>=0.1", {"eval/sampled_accuracy": 1.0})


def test_the_first_rows_are_asked_and_those_without_an_answer_left_out(home):
    path = home / "runs" / "mixed.jsonl"
    with path.open("w") as file:
        for number in range(4):
            turns = [{"role": "user", "content": str(number)}]
            row = {"conversations": turns} | ({"answer": str(number)} if number % 2 else {})
            file.write(json.dumps(row) + "\n")
    config = GRPOConfig(eval_data_path="runs/mixed.jsonl", eval_size=3)
    assert [prompt.answer for prompt in held_out_prompts(config)] == ["1"]
    with pytest.raises(ConfigurationError, match="none of the first 1 rows has an answer"):
        held_out_prompts(config.replaced(eval_size=1))


def test_an_evaluation_is_recorded_before_training_and_after_it_with_a_few_answers(home):
    save_start(home)
    assert run_grpo("runs/1", max_steps=1, eval_data_path="runs/data.jsonl", eval_size=5) == 0
    folder = home / "runs" / "1"
    result = json.loads((folder / "result.json").read_text())
    names = ["eval/completion_length", "eval/greedy_accuracy", "eval/sampled_accuracy"]
    assert sorted(result["eval_before"]) == sorted(result["eval_after"]) == names
    samples = [row for row in read_rows(folder / "samples.jsonl") if row["kind"] == "eval"]
    assert [row["step"] for row in samples] == [0, 0, 0, 0, 1, 1, 1, 1]
    for completion in samples[0]["completions"]:
        assert completion["advantage"] is None
        assert completion["reward"] == completion["rewards"]["answer"]


def test_a_model_that_knows_the_answers_is_right_every_time(home):
    """The answers are learned by heart, then asked for."""
    from tests.trainers.sft_runs import run_sft

    assert (
        run_sft(
            "runs/1",
            epochs=60,
            batch_size=10,
            lr_schedule="constant",
            eval_data_path="runs/data.jsonl",
            eval_temperature=0.1,
            max_gen_len=8,
        )
        == 0
    )
    result = json.loads((home / "runs" / "1" / "result.json").read_text())
    assert result["eval_before"]["eval/greedy_accuracy"] == 0.0
    assert result["eval_after"]["eval/greedy_accuracy"] == 1.0
    assert result["eval_after"]["eval/sampled_accuracy"] == 1.0
    assert result["eval_after"]["eval/completion_length"] == 4.0, "three digits and the end token"


def test_the_random_state_is_that_of_before(home):
    save_start(home)
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from trainers.evaluation import evaluate_answers
    from trainers.preparation import build_run

    folder = home / "runs" / "1"
    folder.mkdir()
    config = GRPOConfig(eval_data_path="runs/data.jsonl", max_gen_len=4)
    run = build_run(config, folder, device="cpu", log=lambda line: None)
    model = AutoModelForCausalLM.from_pretrained(home / "runs" / "start" / "model")
    tokenizer = AutoTokenizer.from_pretrained(home / "runs" / "start" / "model")
    before = torch.get_rng_state()
    first = evaluate_answers(model, tokenizer, run, config)
    assert torch.equal(torch.get_rng_state(), before)
    assert evaluate_answers(model, tokenizer, run, config) == first


def answers_of(home, name, **flags):
    """Return the greedy and the sampled answers of random weights to four prompts, before training and after a step."""
    assert run_grpo(f"runs/{name}", max_steps=1, learning_rate=1e-12, eval_data_path="runs/data.jsonl", **flags) == 0
    rows = [row for row in read_rows(home / "runs" / name / "samples.jsonl") if row["kind"] == "eval"]
    greedy, sampled = zip(*([completion["text"] for completion in row["completions"]] for row in rows), strict=True)
    return greedy[:4], greedy[4:], sampled[:4], sampled[4:]


def test_greedy_answers_do_not_depend_on_chance_and_sampled_ones_do_at_their_temperature(home):
    save_start(home)
    greedy, greedy_later, sampled, sampled_later = answers_of(home, "warm")
    assert greedy == greedy_later
    assert not set(sampled) & set(greedy)
    assert sampled != sampled_later
    greedy, _, sampled, _ = answers_of(home, "cold", eval_temperature=1e-4)
    assert sampled == greedy
