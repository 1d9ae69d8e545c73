"""Real processes, as a person or a worker starts them: by ``--processes`` and by ``torchrun``."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.trainers.grpo_runs import metrics_of, same_weights
from tests.trainers.sft_runs import argv
from trainers.launch import environment, joint_ending, wait_for
from trainers.paths import REPOSITORY

pytestmark = pytest.mark.slow

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2"]
LONG = {"epochs": 4000, "batch_size": 2, "save_interval": 1_000_000}


def start(home: Path, *command: str) -> subprocess.Popen:
    return subprocess.Popen(
        command,
        cwd=REPOSITORY,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "NIGHTSHIFT_HOME": str(home), "OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )


def started_training(home: Path) -> subprocess.Popen:
    process = start(home, sys.executable, "-m", "trainers", *argv("runs/1", **LONG), "--processes", "2")
    while not (line := process.stdout.readline()).startswith("Epoch:[2/"):
        assert line, process.stderr.read()
    return process


def children_of(process: subprocess.Popen) -> list[int]:
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(number) for number in listed.split()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def result_of(home: Path) -> dict:
    return json.loads((home / "runs" / "1" / "result.json").read_text())


def test_torchrun_and_processes_train_the_same(home):
    flags = {"batch_size": 2, "epochs": 1}
    for process in (
        start(home, *TORCHRUN, "-m", "trainers", *argv("runs/1", **flags)),
        start(home, sys.executable, "-m", "trainers", *argv("runs/2", **flags), "--processes", "2"),
    ):
        _, error = process.communicate(timeout=120)
        assert process.returncode == 0, error
    assert same_weights(home / "runs" / "1", home / "runs" / "2")
    assert metrics_of(home / "runs" / "1") == metrics_of(home / "runs" / "2")
    assert result_of(home)["processes"] == 2
    assert (home / "runs" / "1" / "log.txt").read_text().splitlines()[0].endswith(" --processes 2")


def test_a_bad_configuration_ends_both_with_one_line_and_its_exit_code(home):
    process = start(
        home, sys.executable, "-m", "trainers", *argv("runs/1", data_path="runs/none.jsonl"), "--processes=2"
    )
    _, error = process.communicate(timeout=60)
    assert process.returncode == 2
    assert error.startswith("error: none.jsonl: cannot be read: No such file or directory")
    assert error.count("\n") == 1
    assert result_of(home)["exit_code"] == 2


def test_under_torchrun_a_wrong_flag_is_said_once(home):
    process = start(home, *TORCHRUN, "-m", "trainers", *argv("runs/1", batch_size=0))
    _, error = process.communicate(timeout=60)
    assert process.returncode == 1  # torchrun's own, whatever the reason
    assert error.count("error: --batch_size: ") == 1


def test_asked_to_stop_all_save_one_checkpoint_and_exit_3(home):
    process = started_training(home)
    children = children_of(process)
    assert len(children) == 2
    os.killpg(process.pid, signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 3
    result = result_of(home)
    assert (result["exit_code"], result["checkpoint_step"]) == (3, result["steps"])
    assert not any(map(alive, children))


def test_one_that_is_killed_ends_all_by_the_same_signal_and_leaves_no_process(home):
    """SIGKILL is what the kernel sends when the memory is used up, and the worker looks for it."""
    process = started_training(home)
    children = children_of(process)
    os.kill(children[1], signal.SIGKILL)
    began = time.monotonic()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert time.monotonic() - began < 15
    assert result_of(home)["error"] == "process 1 of 2 died (see above)"
    assert not any(map(alive, children))


@pytest.mark.parametrize(
    ("codes", "together"),
    [
        ([0, 0], 0),
        ([3, 3], 3),
        ([2, 1], 2),
        ([0, 1], 1),
        ([1, -9], -9),
        ([None, 4], 4),
        ([None, -11], -11),
    ],
)
def test_how_all_ended_is_a_death_by_signal_else_what_the_main_one_says(codes, together):
    assert joint_ending(codes) == together


def test_what_still_runs_when_another_has_failed_is_given_up_after_a_while(monkeypatch):
    monkeypatch.setattr("trainers.launch.GRACE_S", 0.2)
    hanging = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    failing = subprocess.Popen([sys.executable, "-c", "raise SystemExit(4)"])
    try:
        assert wait_for([hanging, failing]) == [None, 4]
    finally:
        hanging.kill()
        hanging.wait()


def test_each_process_knows_its_place_and_shares_the_cores(monkeypatch, tmp_path):
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    found = environment(1, 2, tmp_path)
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "OMP_NUM_THREADS", "NIGHTSHIFT_MEETING_POINT")
    assert [found[name] for name in names] == ["1", "1", "2", "4", f"file://{tmp_path}/meeting"]
