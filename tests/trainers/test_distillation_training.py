"""Distillations from their command: what they compute, record and refuse."""

import json

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from dataset.conversations import ConversationRows, collate
from tests.trainers.distillation_runs import run_distillation
from tests.trainers.grpo_runs import TOKENIZER, first_gradient, metrics_of, save_start, start_model, state_of
from trainers import distillation
from trainers.configs import DistillationConfig, ModelSize
from trainers.distillation import distillation_loss
from trainers.exports import publish, save_model
from trainers.models import fresh_model, moe_loss, moe_options
from trainers.supervised import count_label_tokens, label_loss
from trainers.teacher import load_teacher

ALPHA, TEMPERATURE = 0.25, 2.0


def values_of(folder, step=1):
    return metrics_of(folder)[step - 1][1]


def batch_of(home, rows):
    """Return the first ``rows`` conversations as one padded batch."""
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    read = ConversationRows(home / "runs" / "data.jsonl", tokenizer, 340)
    return collate([read[index] for index in range(rows)], tokenizer.pad_token_id)


@pytest.mark.parametrize("kind", ["qwen3", "gpt2", "moe"])
@pytest.mark.parametrize("student_use_moe", [0, 1])
def test_the_loss_is_the_weighted_sum_of_labels_and_teacher_with_the_student_s_experts_beside_it(
    home, kind, student_use_moe
):
    """All ten rows in one step, from any teacher: learned or rotary positions, experts or not, dropout silenced."""
    save_start(home, kind)
    flags = {
        "alpha": ALPHA,
        "temperature": TEMPERATURE,
        "student_use_moe": student_use_moe,
        "batch_size": 10,
        "max_seq_len": 128,
        "max_steps": 1,
        "learning_rate": 1e-30,
        "weight_decay": 0,
    }
    assert run_distillation("runs/1", **flags) == 0
    student = AutoModelForCausalLM.from_pretrained(home / "runs" / "1" / "model")  # as it was: the rate is nothing
    teacher = AutoModelForCausalLM.from_pretrained(home / "runs" / "start" / "model").eval()
    batch = batch_of(home, 10)
    labels, count = batch.pop("labels"), count_label_tokens([batch_of(home, 10)])
    with torch.no_grad():
        outputs = student(**batch, **moe_options(student))
        ce_loss = label_loss(outputs.logits, labels, num_label_tokens=count)
        kl = distillation_loss(
            outputs.logits, teacher(**batch).logits, labels, temperature=TEMPERATURE, num_label_tokens=count
        )
        balance = float(moe_loss(student, outputs))
    values = values_of(home / "runs" / "1")
    assert values["ce_loss"] == pytest.approx(float(ce_loss), rel=1e-5)
    assert values["distillation_loss"] == pytest.approx(float(kl), rel=1e-5)
    assert values["loss"] == pytest.approx(ALPHA * float(ce_loss) + (1 - ALPHA) * float(kl) + balance, rel=1e-5)
    assert (balance >= 5e-4) == bool(student_use_moe), "0.0005 times a balance that is 1 when the experts share evenly"
    published = "full_dist_16_moe.pth" if student_use_moe else "full_dist_16.pth"
    assert [path.name for path in (home / "runs" / "out").iterdir()] == [published]


@pytest.mark.parametrize(("batch_size", "accumulation_steps"), [(5, 2), (1, 10), (3, 4)])
def test_how_a_batch_is_cut_into_micro_batches_changes_neither_loss_nor_gradient(start, batch_size, accumulation_steps):
    answers = ["1", "a much longer answer than the others", "6 7 8", "y", "9", "10", "11 12", "13", "14", "fifteen"]
    rows = [[{"role": "user", "content": "?"}, {"role": "assistant", "content": answer}] for answer in answers]
    (start / "data.jsonl").write_text("".join(json.dumps({"conversations": row}) + "\n" for row in rows))
    assert run_distillation("runs/whole", batch_size=10, max_steps=1) == 0
    assert run_distillation("runs/cut", batch_size=batch_size, accumulation_steps=accumulation_steps, max_steps=1) == 0
    whole, cut = values_of(start / "whole"), values_of(start / "cut")
    for name in ("loss", "ce_loss", "distillation_loss"):
        assert cut[name] == pytest.approx(whole[name], rel=1e-5)
    torch.testing.assert_close(first_gradient(start / "cut"), first_gradient(start / "whole"), rtol=1e-4, atol=1e-6)


def test_a_student_that_starts_as_its_teacher_has_nothing_to_learn_from_it(start):
    assert run_distillation("runs/1", init_path="runs/start/model", alpha=0, max_steps=1) == 0
    assert values_of(start / "1")["distillation_loss"] == pytest.approx(0.0, abs=1e-6)
    assert values_of(start / "1")["grad_norm"] < 1e-4


def test_the_student_comes_close_to_its_teacher(start):
    assert run_distillation("runs/1", alpha=0, batch_size=10, epochs=40, student_hidden_size=32) == 0
    first, last = values_of(start / "1"), values_of(start / "1", 40)
    assert last["distillation_loss"] < first["distillation_loss"] / 5


def test_with_alpha_1_no_teacher_is_needed_and_its_loss_is_not_recorded(home):
    assert run_distillation("runs/1", alpha=1, max_steps=1) == 0
    values = values_of(home / "runs" / "1")
    assert values["loss"] == values["ce_loss"]
    assert "distillation_loss" not in values


def test_with_alpha_0_the_labels_have_no_loss(start, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("computed")

    monkeypatch.setattr(distillation, "label_loss", refuse)
    assert run_distillation("runs/1", alpha=0, max_steps=1) == 0
    values = values_of(start / "1")
    assert values["loss"] == values["distillation_loss"]
    assert "ce_loss" not in values


@pytest.mark.parametrize("alpha", [0, 0.5, 1])
def test_rows_cut_so_short_that_nothing_is_taught_have_loss_zero(start, alpha):
    assert run_distillation("runs/1", max_seq_len=3, alpha=alpha, max_steps=2) == 0
    assert [values["loss"] for _, values in metrics_of(start / "1")] == [0.0, 0.0]
    assert "teach nothing" in (start / "1" / "log.txt").read_text()


def test_padding_with_the_end_token_trains_the_same(start):
    """Report 21: pad equal to eos; masks and labels come from lengths."""
    assert run_distillation("runs/1", max_steps=1) == 0
    described = json.loads((TOKENIZER / "tokenizer_config.json").read_text())
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    assert tokenizer.pad_token != tokenizer.eos_token, described["pad_token"]
    tokenizer.pad_token = tokenizer.eos_token
    tokenizer.save_pretrained(start / "padded")
    assert run_distillation("runs/2", max_steps=1, tokenizer_path="runs/padded") == 0
    assert values_of(start / "1") == values_of(start / "2")


def test_a_step_records_its_values_and_logs_them_as_the_scripts_do(start):
    assert run_distillation("runs/1", max_steps=1) == 0
    values = values_of(start / "1")
    assert list(values) == ["loss", "ce_loss", "distillation_loss", "learning_rate", "grad_norm", "num_tokens"]
    line = (start / "1" / "log.txt").read_text().splitlines()[2]
    assert line.startswith(
        f"Epoch:[1/2](1/3), loss: {values['loss']:.4g}, ce: {values['ce_loss']:.4g}, "
        f"distill: {values['distillation_loss']:.4g}, lr: 0.01, grad_norm: {values['grad_norm']:.4g}, "
    )


def test_the_student_is_evaluated_on_held_out_prompts_without_changing_its_training(start):
    evaluated = {"eval_data_path": "runs/data.jsonl", "eval_interval": 2, "max_gen_len": 4}
    assert run_distillation("runs/with", **evaluated) == 0
    assert run_distillation("runs/without") == 0
    steps = [step for step, values in metrics_of(start / "with") if "eval/greedy_accuracy" in values]
    assert steps == [0, 2, 4, 6]
    with_, without = state_of(start / "with")["model"], state_of(start / "without")["model"]
    assert all(torch.equal(with_[name], without[name]) for name in without)
    result = json.loads((start / "with" / "result.json").read_text())
    assert (result["steps"], result["published"]) == (6, "runs/out/full_dist_16.pth")
    assert result["eval_after"].keys() == {"eval/greedy_accuracy", "eval/sampled_accuracy", "eval/completion_length"}


def test_the_teacher_comes_from_the_save_folder_and_may_have_experts_and_another_size(home):
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    teacher = fresh_model(ModelSize(32, 2, True, 4, 2), tokenizer)
    publish(teacher, DistillationConfig(save_dir="runs/out", save_weight="big"))
    save_model(teacher, tokenizer, home / "runs" / "start" / "model")
    flags = {"teacher_path": None, "teacher_hidden_size": 32, "teacher_num_layers": 2}
    assert run_distillation("runs/1", from_teacher_weight="big", teacher_use_moe=1, **flags, max_steps=1) == 0
    assert run_distillation("runs/2", max_steps=1) == 0
    found, expected = values_of(home / "runs" / "1"), values_of(home / "runs" / "2")
    assert found["distillation_loss"] == pytest.approx(expected["distillation_loss"], rel=1e-3), "but for fp16"


def test_the_teacher_is_frozen_and_silent(start):
    config = DistillationConfig(teacher_path="runs/start/model")
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    teacher = load_teacher(config, start_model("qwen3", len(tokenizer)), tokenizer, torch.device("cpu"))
    assert not teacher.training
    assert not any(parameter.requires_grad for parameter in teacher.parameters())


def test_a_missing_teacher_names_its_file_and_the_way_out(home, capfd):
    assert run_distillation("runs/1", teacher_path=None, teacher_hidden_size=32) == 2
    assert capfd.readouterr().err == (
        f"error: the teacher, which every attempt reads anew: no weights at {home}/runs/out/full_sft_32.pth; train "
        "them first (--save_weight full_sft), or name the teacher's folder with --teacher_path\n"
    )


def test_a_vocabulary_that_differs_from_the_teacher_s_names_both(home, capfd):
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    start_model("qwen3", 77).save_pretrained(home / "runs" / "start" / "model")
    assert run_distillation("runs/1") == 2
    assert capfd.readouterr().err == (
        f"error: the teacher has a vocabulary of 77 tokens and the student one of {len(tokenizer)}; distillation needs "
        "the same one\n"
    )


def test_a_teacher_that_numbers_the_same_tokens_otherwise_is_refused(start, capfd):
    path = start / "start" / "model" / "tokenizer.json"
    described = json.loads(path.read_text())
    words = described["model"]["vocab"]
    one, other = list(words)[100:102]
    words[one], words[other] = words[other], words[one]
    path.write_text(json.dumps(described))
    assert run_distillation("runs/1", tokenizer_path=str(TOKENIZER)) == 2
    assert "numbers its" in capfd.readouterr().err


def test_rows_longer_than_the_teacher_s_positions_are_refused(home, capfd):
    save_start(home, "gpt2")  # 128 positions
    assert run_distillation("runs/1", max_seq_len=129) == 2
    assert "the model has 128 positions" in capfd.readouterr().err


def test_numbers_that_are_not_finite_end_the_run_with_the_step(start, capfd):
    teacher = start_model("qwen3", len(AutoTokenizer.from_pretrained(TOKENIZER)))
    with torch.no_grad():
        teacher.model.norm.weight[0] = float("nan")
    save_model(teacher, AutoTokenizer.from_pretrained(TOKENIZER), start / "start" / "model")
    assert run_distillation("runs/1") == 1
    assert "error: the loss at step 1 is not finite (nan)" in capfd.readouterr().err
