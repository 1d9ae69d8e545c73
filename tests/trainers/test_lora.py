import json
import os
import shutil
import subprocess
import sys

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.trainers.conftest import SUMS
from tests.trainers.grpo_runs import TOKENIZER, metrics_of, same_weights, save_start, state_of
from tests.trainers.lora_runs import argv, run_lora
from tests.trainers.sft_runs import run_sft
from trainers.configs import LoRAConfig
from trainers.errors import ConfigurationError
from trainers.models import load_policy
from trainers.paths import REPOSITORY

WHOLE = {"lr_schedule": "constant"}  # the first part of a run does not know of the second
KINDS = ["qwen3", "moe", "gpt2"]
IDS = torch.arange(20, 34).view(2, 7)


def logits_of(model):
    with torch.no_grad():
        return model.eval()(IDS).logits


def load(folder):
    return AutoModelForCausalLM.from_pretrained(folder)


@pytest.mark.parametrize("kind", KINDS)
def test_the_run_leaves_merged_weights_and_an_adapter_that_agree(home, kind):
    save_start(home, kind)
    assert run_lora("runs/1", epochs=1) == 0
    base = load(home / "runs" / "start" / "model")
    merged = logits_of(load(home / "runs" / "1" / "model"))
    assert (merged - logits_of(base)).abs().max() > 1e-3
    adapted = PeftModel.from_pretrained(base, home / "runs" / "1" / "adapter")
    torch.testing.assert_close(logits_of(adapted), merged, rtol=0, atol=1e-5)
    assert sorted(path.name for path in (home / "runs" / "1" / "adapter").iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_the_weights_beneath_the_adapters_stay_as_they_are(home, kind):
    save_start(home, kind)
    run_lora("runs/1", epochs=1)
    trained, base = state_of(home / "runs" / "1")["model"], load(home / "runs" / "start" / "model").state_dict()
    kept = {name.replace("base_layer.", ""): value for name, value in trained.items() if ".lora_" not in name}
    assert kept.keys() == base.keys()
    assert all(torch.equal(kept[name], base[name]) for name in base)
    assert any(value.any() for name, value in trained.items() if ".lora_B" in name)


@pytest.mark.parametrize(("use_moe", "ending"), [(0, ""), (1, "_moe")])
def test_weights_and_adapter_are_published_under_their_own_names(home, use_moe, ending):
    assert run_sft("runs/base", use_moe=use_moe, max_steps=1) == 0
    flags = {"init_path": None, "from_weight": "full_sft", "use_moe": use_moe, "epochs": 1}
    assert run_lora("runs/1", **flags, lora_name="medical", save_weight="doctor") == 0
    out = home / "runs" / "out"
    base, merged, adapter = (
        torch.load(out / f"{name}_32{ending}.pth", weights_only=True) for name in ("full_sft", "doctor", "medical")
    )
    query = "model.layers.0.self_attn.q_proj"
    down, up = adapter[f"{query}.lora.A.weight"], adapter[f"{query}.lora.B.weight"]
    assert (down.shape, up.shape, up.dtype) == ((4, 32), (32, 4), torch.float16)
    summed = base[f"{query}.weight"].float() + up.float() @ down.float()
    torch.testing.assert_close(summed, merged[f"{query}.weight"].float(), rtol=0, atol=1e-3)  # fp16
    assert merged.keys() == base.keys()
    log = (home / "runs" / "1" / "log.txt").read_text()
    assert f"as the scripts keep it, in runs/out/medical_32{ending}.pth\n" in log
    result = json.loads((home / "runs" / "1" / "result.json").read_text())
    assert result["published"] == f"runs/out/doctor_32{ending}.pth"


def test_an_architecture_that_the_scripts_do_not_know_leaves_its_adapter_in_the_run_alone(home):
    save_start(home, "gpt2")
    assert run_lora("runs/1", max_steps=1) == 0
    assert list((home / "runs" / "out").iterdir()) == []
    assert (home / "runs" / "1" / "adapter" / "adapter_model.safetensors").exists()


def test_the_log_says_how_much_is_trained(start):
    run_lora("runs/1", max_steps=1)
    assert "\ntrainable: 4,096 of " in (start / "1" / "log.txt").read_text()


def test_another_run_starts_from_the_merged_weights(start):
    assert run_lora("runs/1", max_steps=1) == 0
    assert run_lora("runs/2", max_steps=1, init_path="runs/1/model") == 0


@pytest.mark.parametrize("kind", KINDS)
def test_three_steps_and_a_resume_without_the_base_equal_six_steps(home, kind):
    save_start(home, kind)
    assert run_lora("runs/whole", **WHOLE) == 0
    assert run_lora("runs/parts", **WHOLE, max_steps=3) == 0
    shutil.rmtree(home / "runs" / "start")
    assert run_lora("runs/parts", **WHOLE, from_resume=1) == 0
    whole, parts = home / "runs" / "whole", home / "runs" / "parts"
    assert [step for step, _ in metrics_of(parts)] == [1, 2, 3, 4, 5, 6]
    assert metrics_of(parts) == metrics_of(whole)
    assert same_weights(parts, whole)
    for name in ("model/model.safetensors", "adapter/adapter_model.safetensors"):
        assert (parts / name).read_bytes() == (whole / name).read_bytes()


def test_a_run_killed_after_a_checkpoint_ends_with_the_weights_of_one_that_was_not(start, home):
    flags = {**WHOLE, "save_interval": 1, "epochs": 60}
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
    saved = json.loads((start / "killed" / "checkpoint" / "meta.json").read_text())["step"]
    flags["epochs"] = saved // 3 + 2
    assert run_lora("runs/killed", **flags, from_resume=1) == 0
    assert run_lora("runs/whole", **flags) == 0
    assert metrics_of(start / "killed") == metrics_of(start / "whole")
    assert same_weights(start / "killed", start / "whole")


def test_a_resume_after_the_last_step_changes_nothing_and_more_epochs_continue(start):
    run_lora("runs/1", epochs=1, **WHOLE)
    names = ("checkpoint/state.pt", "model/model.safetensors", "adapter/adapter_model.safetensors")
    before = [(start / "1" / name).read_bytes() for name in names]
    assert run_lora("runs/1", epochs=1, **WHOLE, from_resume=1) == 0
    assert [(start / "1" / name).read_bytes() for name in names] == before
    assert run_lora("runs/1", epochs=2, **WHOLE, from_resume=1) == 0
    assert run_lora("runs/2", epochs=2, **WHOLE) == 0
    assert same_weights(start / "1", start / "2")


@pytest.mark.parametrize("kind", ["qwen3", "moe"])
def test_the_loss_and_the_gradient_do_not_depend_on_the_micro_batches(home, kind):
    save_start(home, kind)
    flags = {"max_steps": 1}
    assert run_lora("runs/whole", **flags) == 0
    assert run_lora("runs/cut", **flags, batch_size=1, accumulation_steps=4) == 0
    (_, whole), (_, cut) = metrics_of(home / "runs" / "whole")[0], metrics_of(home / "runs" / "cut")[0]
    # The balance of the experts is a statistic of each micro-batch: 0.01 times a number near 1
    assert cut["loss"] == pytest.approx(whole["loss"], abs=1e-3 if kind == "moe" else 1e-5)
    if kind == "qwen3":
        assert cut["grad_norm"] == pytest.approx(whole["grad_norm"], rel=1e-4)


def test_the_balance_of_the_experts_is_part_of_the_loss(home):
    """With no token to learn, the loss is the balance alone: 0.01 times a number near 1; and adapters learn it."""
    save_start(home, "moe")
    run_lora("runs/1", max_seq_len=3, max_steps=1)
    [(_, values)] = metrics_of(home / "runs" / "1")
    assert 0.01 <= values["loss"] < 0.02
    assert values["grad_norm"] > 0.0


def test_adapters_alone_teach_a_trained_base_other_answers(home):
    assert run_sft("runs/base", epochs=30, batch_size=10, lr_schedule="constant") == 0
    turned = [(question, answer[::-1]) for question, answer in SUMS]
    with (home / "runs" / "turned.jsonl").open("w") as file:
        for question, answer in turned:
            turns = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
            file.write(json.dumps({"conversations": turns}) + "\n")
    flags = {"init_path": "runs/base/model", "data_path": "runs/turned.jsonl", "lora_rank": 8, **WHOLE}
    assert run_lora("runs/1", **flags, batch_size=10, epochs=25) == 0
    result = json.loads((home / "runs" / "1" / "result.json").read_text())
    assert result["last"]["loss"] < result["first"]["loss"] / 3


def test_answers_are_evaluated_and_evaluating_changes_nothing(start):
    flags = {"eval_data_path": "runs/data.jsonl", "eval_interval": 2, "max_gen_len": 4}
    assert run_lora("runs/with", **flags, max_steps=3) == 0
    assert run_lora("runs/without", max_steps=3) == 0
    assert [step for step, values in metrics_of(start / "with") if "eval/greedy_accuracy" in values] == [0, 2, 3]
    assert same_weights(start / "with", start / "without")


def test_adapters_that_do_not_fit_the_checkpoint_are_refused(start, capfd):
    run_lora("runs/1", max_steps=1)
    assert run_lora("runs/1", lora_rank=2, from_resume=1) == 2
    assert "the checkpoint's model has another shape" in capfd.readouterr().err


def test_another_scale_of_the_adapters_than_the_checkpoint_was_trained_with_is_refused(start, capfd):
    run_lora("runs/1", max_steps=1)
    assert run_lora("runs/1", lora_alpha=16.0, from_resume=1) == 2
    assert "the checkpoint was made with lora_alpha 8.0, now 16.0; start a new job instead" in capfd.readouterr().err


def test_the_base_is_looked_for_in_the_save_folder_and_then_where_the_script_keeps_it(home):
    assert LoRAConfig().weight_folders() == ("../out/lora", "../out")
    config = LoRAConfig(save_dir="runs/out", from_weight="never_trained")
    with pytest.raises(ConfigurationError) as refused:
        load_policy(config, AutoTokenizer.from_pretrained(TOKENIZER))
    here, there = home / "runs" / "out" / "never_trained_512.pth", REPOSITORY / "out" / "never_trained_512.pth"
    assert str(refused.value).startswith(f"no weights at {here} or {there}; train them first")
