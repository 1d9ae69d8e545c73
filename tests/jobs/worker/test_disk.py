"""Measuring a real disk, and the size of a run folder."""

import os
import subprocess
from pathlib import Path

import pytest
from django.utils import timezone

from jobs.models import Host
from jobs.worker.disk import folder_bytes, report_disk

MB = 1_000_000


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 4 MiB."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {mounted.stderr.decode()}")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.django_db
def test_a_disk_that_fills_pauses_its_host_until_there_is_room(small_disk, settings):
    settings.NIGHTSHIFT_DISK_RESERVE = 2 * MB
    Host.objects.create(name="here", seen_at=timezone.now())
    report_disk("here", home=small_disk)
    before = Host.objects.get()
    assert (before.disk_total, before.paused_reason) == (4 * 2**20, "")
    (small_disk / "checkpoint").write_bytes(bytes(3 * MB))
    report_disk("here", home=small_disk)
    full = Host.objects.get()
    assert full.disk_free < 2 * MB
    assert full.paused_reason == f"only 1.2 MB free on {small_disk}; free some space or lower retention"
    (small_disk / "checkpoint").unlink()
    report_disk("here", home=small_disk)
    assert Host.objects.get().paused_reason == ""


@pytest.mark.django_db
def test_a_folder_that_is_not_there_leaves_the_disk_unknown(tmp_path):
    Host.objects.create(name="here", disk_free=5, disk_total=9)
    report_disk("here", home=tmp_path / "gone")
    assert Host.objects.get().disk_total == 0


def test_the_size_of_a_folder_is_that_of_its_own_files(tmp_path):
    outside = tmp_path / "outside"
    outside.write_bytes(bytes(1000))
    folder = tmp_path / "run"
    (folder / "checkpoint").mkdir(parents=True)
    (folder / "log.txt").write_bytes(bytes(10))
    (folder / "checkpoint" / "state.pt").write_bytes(bytes(200))
    (folder / "link").symlink_to(outside)
    (folder / "elsewhere").symlink_to(Path("/usr"))
    assert folder_bytes(folder) == 210
    assert folder_bytes(tmp_path / "gone") == 0
