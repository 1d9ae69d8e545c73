import hashlib
import json
import subprocess

import numpy
import peft
import pytest
import torch
import transformers

from tests.trainers.sft_runs import run_sft
from trainers.device import device_name
from trainers.paths import REPOSITORY
from trainers.result import data_digest


@pytest.fixture
def result(home):
    assert run_sft("runs/1", max_steps=1, seed=7, eval_data_path="runs/data.jsonl") == 0
    return json.loads((home / "runs" / "1" / "result.json").read_text())


def test_the_result_says_what_is_needed_to_make_it_again(home, result):
    digest = hashlib.sha256((home / "runs" / "data.jsonl").read_bytes()).hexdigest()
    assert (result["data_sha256"], result["eval_data_sha256"], result["seed"]) == (digest, digest, 7)
    assert (
        result["versions"].items()
        >= {
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "peft": peft.__version__,
            "numpy": numpy.__version__,
        }.items()
    )
    assert result["versions"]["python"].startswith("3.")
    assert (result["device"], result["processes"], result["rows"], result["rows_skipped"]) == ("cpu", 1, 10, 0)
    assert result["device_name"] == device_name(torch.device("cpu"))
    assert result["device_name"]


def test_the_result_names_the_commit_that_trained(result):
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert result["code_revision"].removesuffix("-dirty") == head.stdout[:12]


def test_skipped_rows_are_counted(home):
    with (home / "runs" / "data.jsonl").open("a") as file:
        file.write('{"conversations": [{"role": "robot", "content": "x"}]}\n')
    assert run_sft("runs/1", max_steps=1) == 0
    result = json.loads((home / "runs" / "1" / "result.json").read_text())
    assert (result["rows"], result["rows_skipped"]) == (10, 1)


def test_a_file_that_may_not_be_read_has_no_digest(home):
    assert data_digest("/etc/passwd") is None
    assert data_digest("runs/none.jsonl") is None
    assert data_digest("runs") is None
