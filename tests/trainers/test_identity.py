import json

import pytest

from tests.trainers.grpo_runs import run_grpo, same_weights
from tests.trainers.sft_runs import run_sft
from trainers.errors import ConfigurationError
from trainers.identity import require_same

MADE_WITH = {"type": "sft", "processes": 1, "hidden_size": 512, "rows": 10, "data_sha256": "a" * 64}


def test_what_was_made_alike_is_continued():
    require_same(MADE_WITH, dict(MADE_WITH))


@pytest.mark.parametrize(
    ("now", "line"),
    [
        ({"type": "dpo", "rows": 9}, "the checkpoint is one of sft, not of dpo; start a new job instead"),
        (
            {"processes": 2, "rows": 9},
            "the checkpoint was made by 1 processes, now there are 2; resume with as many, or start a new job",
        ),
        (
            {"hidden_size": 768, "rows": 9, "data_sha256": "b" * 64},
            "the checkpoint was made with hidden_size 512, now 768; rows 10, now 9; start a new job instead",
        ),
        (
            {"data_sha256": "b" * 64},
            "the file at --data_path has changed since the checkpoint (SHA-256 aaaaaaaaaaaa, now bbbbbbbbbbbb); "
            "bring the old one back, or start a new job",
        ),
        (
            {"data_sha256": None},
            "the file at --data_path has changed since the checkpoint (SHA-256 aaaaaaaaaaaa, now unknown); "
            "bring the old one back, or start a new job",
        ),
    ],
)
def test_what_differs_is_one_line_that_names_both(now, line):
    with pytest.raises(ConfigurationError) as refused:
        require_same(MADE_WITH, MADE_WITH | now)
    assert str(refused.value) == line


def test_another_size_of_the_model_is_refused_though_the_checkpoint_knows_its_own(home, capfd):
    assert run_sft("runs/1", max_steps=1) == 0
    assert run_sft("runs/1", from_resume=1, hidden_size=64, num_hidden_layers=3) == 2
    assert capfd.readouterr().err == (
        "error: the checkpoint was made with hidden_size 32, now 64; num_hidden_layers 2, now 3; "
        "start a new job instead\n"
    )


def test_data_of_the_same_length_that_says_something_else_is_refused_and_welcome_again_when_it_is_back(home, capfd):
    assert run_sft("runs/1", max_steps=1) == 0
    data = home / "runs" / "data.jsonl"
    before = data.read_text()
    data.write_text(before.replace("07+38", "07+39"))
    assert run_sft("runs/1", from_resume=1, max_steps=2) == 2
    assert capfd.readouterr().err.startswith(
        "error: the file at --data_path has changed since the checkpoint (SHA-256 "
    )
    data.write_text(before)
    assert run_sft("runs/1", from_resume=1, max_steps=2) == 0


def test_a_checkpoint_of_another_type_is_refused(start, capfd):
    assert run_sft("runs/1", max_steps=1) == 0
    assert run_grpo("runs/1", from_resume=1) == 2
    assert capfd.readouterr().err == "error: the checkpoint is one of sft, not of grpo; start a new job instead\n"


def test_a_kl_term_that_comes_later_has_no_reference_and_is_refused(start, capfd):
    """The architecture comes from the checkpoint: its fresh random weights must not become the reference."""
    assert run_grpo("runs/1", beta=0, max_steps=1) == 0
    assert run_grpo("runs/1", beta=0.1, max_steps=2, from_resume=1) == 2
    assert capfd.readouterr().err == (
        "error: the checkpoint holds no reference: its run had no KL term; "
        "start over with --from_resume 0, or start a new job\n"
    )


@pytest.mark.parametrize("steps", [3, 6], ids=["the end of an epoch", "the end of the run"])
def test_a_resume_at_an_end_takes_no_step(home, steps):
    assert run_sft("runs/1", max_steps=steps) == 0
    folder = home / "runs" / "1"
    weights = (folder / "model" / "model.safetensors").read_bytes()
    metrics = (folder / "metrics.jsonl").read_text()
    assert run_sft("runs/1", max_steps=steps, from_resume=1) == 0
    assert (folder / "model" / "model.safetensors").read_bytes() == weights
    assert (folder / "metrics.jsonl").read_text() == metrics
    assert json.loads((folder / "result.json").read_text())["steps"] == steps


def test_a_resume_needs_no_weights_to_start_from(start):
    for run in (
        lambda name, **flags: run_sft(name, init_path="runs/start/model", lr_schedule="constant", **flags),
        run_grpo,
    ):
        assert run("runs/whole", max_steps=4) == 0
        assert run("runs/parts", max_steps=2) == 0
        (start / "start").rename(start / "away")
        assert run("runs/parts", max_steps=4, from_resume=1) == 0
        (start / "away").rename(start / "start")
        assert same_weights(start / "parts", start / "whole")
