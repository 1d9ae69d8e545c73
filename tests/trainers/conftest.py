"""A state folder of its own for every test that runs a trainer."""

import json
from pathlib import Path

import pytest
import torch

from tests.trainers.grpo_runs import save_start
from tests.trainers.pair_runs import ANSWERED, write_pairs

SUMS = [
    ("07+38", "045"),
    ("12+30", "042"),
    ("99+01", "100"),
    ("20+05", "025"),
    ("41+17", "058"),
    ("63+36", "099"),
    ("08+08", "016"),
    ("50+49", "099"),
    ("11+22", "033"),
    ("70+15", "085"),
]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty state folder, with ten conversations in ``runs/data.jsonl``."""
    monkeypatch.setenv("NIGHTSHIFT_HOME", str(tmp_path))
    monkeypatch.delenv("NIGHTSHIFT_PUMPED", raising=False)
    (tmp_path / "runs").mkdir()
    with (tmp_path / "runs" / "data.jsonl").open("w") as file:
        for question, answer in SUMS:
            turns = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
            file.write(json.dumps({"conversations": turns, "answer": answer}) + "\n")
    return tmp_path


@pytest.fixture
def start(home: Path) -> Path:
    """Return a state folder that holds data and random weights to start from."""
    save_start(home)
    return home / "runs"


@pytest.fixture
def pairs(start: Path) -> Path:
    """Return the runs of a state folder that holds preference pairs and random weights to start from."""
    write_pairs(start / "pairs.jsonl", ANSWERED)
    return start


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Compute with one thread, here and in the processes that tests start: another number rounds sums otherwise."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
