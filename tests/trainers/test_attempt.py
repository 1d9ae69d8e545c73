import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
import torch

from tests.trainers.sft_runs import argv, run_sft
from trainers.attempt import run_attempt
from trainers.cli import parse_command
from trainers.paths import REPOSITORY
from trainers.records import read_rows


def start(home, *arguments, **environment):
    return subprocess.Popen(
        [sys.executable, "-m", "trainers", *arguments],
        cwd=REPOSITORY,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "NIGHTSHIFT_HOME": str(home), "OMP_NUM_THREADS": "1", **environment},
    )


def result_of(home, name="1"):
    return json.loads((home / "runs" / name / "result.json").read_text())


def test_an_orderly_end_leaves_the_whole_folder(home):
    assert run_sft("runs/1", log_interval=3) == 0
    assert sorted(path.name for path in (home / "runs" / "1").iterdir()) == [
        "checkpoint",
        "config.json",
        "log.txt",
        "metrics.jsonl",
        "model",
        "result.json",
    ]
    result = result_of(home)
    assert (result["exit_code"], result["error"], result["steps"], result["total_steps"]) == (0, None, 6, 6)
    assert (result["checkpoint_step"], result["stopped_early"], result["device"]) == (6, False, "cpu")
    assert result["published"] == "runs/out/full_sft_32.pth"
    assert result["first"]["loss"] > result["last"]["loss"]
    assert len(result["data_sha256"]) == 64
    assert json.loads((home / "runs" / "1" / "config.json").read_text())["type"] == "sft"
    assert json.loads((home / "runs" / "1" / "checkpoint" / "meta.json").read_text())["step"] == 6


def test_the_log_begins_with_the_command_and_reads_as_the_scripts_print(home):
    run_sft("runs/1", log_interval=3)
    lines = (home / "runs" / "1" / "log.txt").read_text().splitlines()
    assert lines[0].startswith("$ python -m trainers sft --run_dir runs/1 --save_dir runs/out --save_weight full_sft ")
    assert [line.split(",")[0] for line in lines if line.startswith("Epoch")] == [
        "Epoch:[1/2](1/3)",
        "Epoch:[1/2](3/3)",
        "Epoch:[2/2](3/3)",
    ]
    assert ", lr: 0.001, " in lines[-2]
    assert lines[-2].endswith("left: 0:00")


def test_under_a_worker_the_log_goes_to_standard_output_alone(home, monkeypatch, capfd):
    monkeypatch.setenv("NIGHTSHIFT_PUMPED", "1")
    run_sft("runs/1", max_steps=1)
    assert not (home / "runs" / "1" / "log.txt").exists()
    assert capfd.readouterr().out.startswith("$ python -m trainers sft --run_dir runs/1 ")


def test_without_a_run_dir_each_run_makes_a_new_folder(home):
    kind, _, _, *rest = argv("runs/x", max_steps=1)
    for _ in range(2):
        assert run_attempt(parse_command([kind, *rest])) == 0
    made = [path.name for path in (home / "runs").glob("sft-*")]
    assert len(made) == 2
    assert all(result_of(home, name)["steps"] == 1 for name in made)


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ({"data_path": "runs/none.jsonl"}, "error: none.jsonl: cannot be read: No such file or directory"),
        ({"data_path": "/etc/passwd"}, "error: /etc/passwd is /etc/passwd, outside the allowed folders"),
        ({"save_dir": "/var/tmp"}, "error: /var/tmp is /var/tmp, outside the allowed folders"),
        ({"from_weight": "pretrain"}, "error: no weights at "),
        ({"init_path": "runs/none"}, "error: no model in "),
        ({"tokenizer_path": "runs/none"}, "error: no tokenizer can be loaded from "),
        ({"train_monitor": "swanlab"}, "error: --train_monitor swanlab: it is not installed"),
        ({"device": "cuda:99"}, "error: --device cuda:99: there are "),
        ({"device": "tpu"}, "error: --device tpu: there are "),
    ],
)
def test_what_cannot_be_run_is_one_line_and_exits_2(home, capfd, flags, line):
    assert run_sft("runs/1", **flags) == 2
    error = capfd.readouterr().err
    assert error.startswith(line)
    assert error.count("\n") == 1
    assert result_of(home)["exit_code"] == 2
    assert "error: " + result_of(home)["error"] == error.rstrip("\n")
    assert error in (home / "runs" / "1" / "log.txt").read_text()


@pytest.mark.parametrize("damage", [b"", b"garbage", b"PK\x03\x04 half of it"])
def test_a_damaged_checkpoint_is_one_line_and_stays_as_it_is(home, capfd, damage):
    run_sft("runs/1", max_steps=1)
    state = home / "runs" / "1" / "checkpoint" / "state.pt"
    state.write_bytes(damage)
    assert run_sft("runs/1", from_resume=1) == 2
    error = capfd.readouterr().err
    assert error.startswith(f"error: {state} cannot be read (")
    assert error.endswith("); start over with --from_resume 0, or start a new job\n")
    assert error.count("\n") == 1
    assert state.read_bytes() == damage
    assert run_sft("runs/1", max_steps=1) == 0


def test_a_file_that_is_no_checkpoint_is_one_line(home, capfd):
    run_sft("runs/1", max_steps=1)
    torch.save({"model": {}, "step": 1}, home / "runs" / "1" / "checkpoint" / "state.pt")
    assert run_sft("runs/1", from_resume=1) == 2
    assert "is no checkpoint: it has no epoch, extra, made_with, random;" in capfd.readouterr().err


@pytest.mark.parametrize(
    "rubbish",
    [b'{"step": 2, "val', b'{"step": 2, "val\n', b"\0" * 100 + b"\n", '{"step": 2, "加'.encode()[:-1], b"3\n"],
)
def test_a_resume_survives_what_a_kill_or_a_full_disk_left_in_the_records(home, rubbish):
    run_sft("runs/1", max_steps=1)
    folder = home / "runs" / "1"
    (folder / "checkpoint" / "meta.json").write_bytes(b"")
    for name in ("metrics.jsonl", "samples.jsonl"):
        with (folder / name).open("ab") as file:
            file.write(rubbish)
    assert run_sft("runs/1", max_steps=2, from_resume=1) == 0
    assert [row["step"] for row in read_rows(folder / "metrics.jsonl")] == [1, 2]
    assert result_of(home)["checkpoint_step"] == 2


def test_a_checkpoint_that_cannot_be_removed_is_told_before_training(home, capfd):
    run_sft("runs/1", max_steps=1)
    shutil.rmtree(home / "runs" / "1" / "checkpoint")
    (home / "runs" / "1" / "checkpoint").write_text("no folder")
    assert run_sft("runs/1", max_steps=1) == 2
    error = capfd.readouterr().err
    assert error.startswith("error: --run_dir: ")
    assert error.count("\n") == 1


def test_data_outside_the_allowed_folders_is_not_even_hashed(home, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "data.jsonl"
    outside.write_text("secret")
    assert run_sft("runs/1", data_path=outside) == 2
    assert result_of(home)["data_sha256"] is None


def test_a_bad_row_is_named_before_torch_is_imported(home):
    with (home / "runs" / "data.jsonl").open("a") as file:
        file.write('{"conversations": [{"role": "robot", "content": "x"}]}\n')
    began = time.monotonic()
    done = start(home, *argv("runs/1", strict=1))
    _, error = done.communicate()
    assert time.monotonic() - began < 3
    assert done.returncode == 2
    assert error.startswith("error: data.jsonl, row 11: ")
    assert error.count("\n") == 1


def test_a_run_dir_outside_the_allowed_folders_is_refused(home, capfd):
    assert run_sft("/var/tmp/run") == 2
    assert capfd.readouterr().err.startswith("error: --run_dir: /var/tmp/run is /var/tmp/run, outside")


def stopped(home, number, **flags):
    """Return the result of a run that was sent a signal in its second epoch, and what it said."""
    process = start(home, *argv("runs/1", **flags))
    while not (line := process.stdout.readline()).startswith("Epoch:[2/"):
        assert line, process.stderr.read()
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 3
    return result_of(home), error


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop_it_saves_a_checkpoint_and_exits_3(home, number):
    result, error = stopped(home, number, epochs=200, save_interval=1000)
    at = result["checkpoint_step"]
    assert 4 <= at < 600
    assert (result["steps"], result["exit_code"]) == (at, 3)
    assert error == f"stopped on request; the checkpoint is at step {at} of 600\n"


def test_a_stopped_and_resumed_run_ends_as_if_never_stopped(home):
    stopped(home, signal.SIGTERM, epochs=20)
    for name, resume in (("1", 1), ("2", 0)):
        finished = start(home, *argv(f"runs/{name}", epochs=20, from_resume=resume))
        finished.communicate(timeout=60)
        assert finished.returncode == 0
    steps = [row["step"] for row in read_rows(home / "runs" / "1" / "metrics.jsonl")]
    assert steps == list(range(1, 61))
    model = "model/model.safetensors"
    assert (home / "runs" / "1" / model).read_bytes() == (home / "runs" / "2" / model).read_bytes()


def test_a_killed_run_continues_from_its_last_checkpoint(home):
    process = start(home, *argv("runs/1", epochs=200, save_interval=2))
    while not process.stdout.readline().startswith("Epoch:[2/"):
        assert process.poll() is None
    process.kill()
    process.communicate()
    assert not (home / "runs" / "1" / "result.json").exists()
    saved = json.loads((home / "runs" / "1" / "checkpoint" / "meta.json").read_text())["step"]
    assert saved >= 2
    assert run_sft("runs/1", epochs=saved // 3 + 2, from_resume=1) == 0
    assert f"resumed from the checkpoint at step {saved}\n" in (home / "runs" / "1" / "log.txt").read_text()
    steps = [row["step"] for row in read_rows(home / "runs" / "1" / "metrics.jsonl")]
    assert steps == list(range(1, 3 * (saved // 3 + 2) + 1))


def test_resuming_without_a_checkpoint_says_so_and_starts(home):
    assert run_sft("runs/1", max_steps=1, from_resume=1) == 0
    assert "no checkpoint to resume from; starting at step 0\n" in (home / "runs" / "1" / "log.txt").read_text()


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(home):
    for name, seed in (("1", 5), ("2", 5), ("3", 6)):
        run_sft(f"runs/{name}", seed=seed, max_steps=2)
    one, two, three = ((home / "runs" / name / "model" / "model.safetensors").read_bytes() for name in "123")
    assert one == two
    assert one != three
