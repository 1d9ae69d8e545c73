"""A run folder on a disk that is really full: one line that says so, exit code 1, and it goes on once there is room.

The worker reads that line, as exit code 1 and not as a bad configuration, and puts the job back in the queue.
"""

import os
import subprocess

import pytest

from tests.trainers.sft_runs import run_sft

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a small disk")


@pytest.fixture
def small_disk(home, monkeypatch):
    """Mount 8 MiB at runs/1, whose log a worker would write elsewhere."""
    monkeypatch.setenv("NIGHTSHIFT_PUMPED", "1")
    disk = home / "runs" / "1"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", disk], check=True)
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


def leave(room, disk):
    """Fill the disk but for ``room`` bytes."""
    (disk / "ballast").write_bytes(b"x" * ((8 << 20) - room))


def test_full_from_the_beginning(small_disk, capsys):
    leave(0, small_disk)
    assert run_sft("runs/1") == 1
    assert capsys.readouterr().err == "error: --run_dir: [Errno 28] No space left on device\n"


def test_full_when_the_first_metrics_are_written(small_disk, capsys):
    leave(4096, small_disk)  # config.json takes the one page
    assert run_sft("runs/1") == 1
    assert capsys.readouterr().err.splitlines() == [
        "error: the disk is full; make room, then resume from the last checkpoint",
        "error: result.json cannot be written: No space left on device",
    ]


def test_full_when_a_checkpoint_is_saved_keeps_the_last_one_and_goes_on_from_it(small_disk, capsys):
    assert run_sft("runs/1", max_steps=2, save_interval=2) == 0
    step = (small_disk / "checkpoint" / "meta.json").read_bytes()
    used = sum(path.stat().st_size for path in small_disk.rglob("*") if path.is_file())
    leave(used + 65_536, small_disk)
    assert run_sft("runs/1", max_steps=4, save_interval=2, from_resume=1) == 1
    assert "error: the disk is full; make room" in capsys.readouterr().err
    assert (small_disk / "checkpoint" / "meta.json").read_bytes() == step
    (small_disk / "ballast").unlink()
    assert run_sft("runs/1", max_steps=4, save_interval=2, from_resume=1) == 0
