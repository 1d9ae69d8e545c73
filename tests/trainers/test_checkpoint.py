import os
import random
import signal
import subprocess
import sys
import time

import pytest
import torch

from trainers.checkpoint import load_checkpoint, restore, save_checkpoint, training_state
from trainers.errors import ConfigurationError
from trainers.paths import REPOSITORY

KILLED_WHILE_WRITING = """
import sys, pathlib, torch
from trainers.checkpoint import save_checkpoint
folder, step = pathlib.Path(sys.argv[1]), 0
while True:
    step += 1
    save_checkpoint(folder, {"step": step, "epoch": 1, "model": torch.full((2_000_000,), float(step)),
                             "made_with": {}, "random": {}, "extra": {}})
    print(step, flush=True)
"""


def trained(seed=0):
    torch.manual_seed(seed)
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.5)
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    return model, optimizer


def test_model_optimizer_and_extra_come_back_bit_for_bit(tmp_path):
    model, optimizer = trained()
    save_checkpoint(
        tmp_path, training_state({"model": model, "optimizer": optimizer}, step=40, epoch=2, extra={"num_tokens": 7})
    )
    state = load_checkpoint(tmp_path)
    other, other_optimizer = trained(seed=1)
    extra = restore(state, {"model": other, "optimizer": other_optimizer})
    assert (state["step"], state["epoch"], extra) == (40, 2, {"num_tokens": 7})
    assert torch.equal(other.weight, model.weight)
    assert other.weight.dtype == torch.float32
    assert torch.equal(other_optimizer.state[other.weight]["exp_avg"], optimizer.state[model.weight]["exp_avg"])


def test_a_step_of_tiny_learning_rate_survives_the_checkpoint(tmp_path):
    """At lr 8e-8 an fp16 file would lose most of ten steps."""
    model, optimizer = trained()
    before = model.weight.detach().clone()
    with torch.no_grad():
        model.weight += 8e-7
    save_checkpoint(tmp_path, training_state({"model": model, "optimizer": optimizer}, step=10, epoch=1))
    kept = load_checkpoint(tmp_path)["model"]["weight"]
    assert torch.equal(kept, model.weight)
    assert not torch.equal(kept, before)


def test_random_draws_continue_where_they_were(tmp_path):
    model, optimizer = trained()
    save_checkpoint(tmp_path, training_state({"model": model, "optimizer": optimizer}, step=1, epoch=1))
    expected = (random.random(), torch.rand(3).tolist())
    restore(load_checkpoint(tmp_path), {"model": model, "optimizer": optimizer})
    assert (random.random(), torch.rand(3).tolist()) == expected


def test_new_learning_rate_and_decay_win_over_those_in_the_checkpoint(tmp_path):
    model, optimizer = trained()
    save_checkpoint(tmp_path, training_state({"model": model, "optimizer": optimizer}, step=1, epoch=1))
    changed = torch.optim.AdamW(model.parameters(), lr=0.7, weight_decay=0.0)
    restore(load_checkpoint(tmp_path), {"model": model, "optimizer": changed})
    assert (changed.param_groups[0]["lr"], changed.param_groups[0]["weight_decay"]) == (0.7, 0.0)


def test_a_model_of_another_shape_is_one_line(tmp_path):
    model, optimizer = trained()
    save_checkpoint(tmp_path, training_state({"model": model, "optimizer": optimizer}, step=1, epoch=1))
    other = torch.nn.Linear(4, 2)
    with pytest.raises(ConfigurationError, match="the checkpoint's model has another shape") as refused:
        restore(load_checkpoint(tmp_path), {"model": other, "optimizer": torch.optim.AdamW(other.parameters())})
    assert "\n" not in str(refused.value)


def test_without_a_checkpoint_there_is_none_even_if_a_write_began(tmp_path):
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / ".state.pt.tmp").write_bytes(b"half of it")
    assert load_checkpoint(tmp_path) is None


@pytest.mark.parametrize("milliseconds", [3, 17, 31])
def test_a_kill_while_writing_leaves_the_checkpoint_before_it(tmp_path, milliseconds):
    writer = subprocess.Popen(
        [sys.executable, "-c", KILLED_WHILE_WRITING, str(tmp_path)], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    )
    reported = 0
    while reported < 3:
        reported = int(writer.stdout.readline())
    time.sleep(milliseconds / 1000)
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait()
    state = load_checkpoint(tmp_path)
    assert state["step"] >= reported
    assert torch.equal(state["model"], torch.full((2_000_000,), float(state["step"])))
