"""Files that are never seen half written."""

import errno
import os

import pytest

from trainers.atomic import replacing


def write_to_a_full_disk(target):
    with replacing(target) as temporary:
        temporary.write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_file_takes_its_place_only_once_it_is_whole(tmp_path):
    target = tmp_path / "state.pt"
    target.write_text("old")
    with replacing(target) as temporary:
        temporary.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


def test_a_write_that_fails_leaves_the_old_file_and_gives_its_space_back(tmp_path):
    target = tmp_path / "state.pt"
    target.write_text("old")
    with pytest.raises(OSError, match="No space"):
        write_to_a_full_disk(target)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_what_a_kill_left_is_written_over(tmp_path):
    (tmp_path / ".state.pt.tmp").write_text("what a kill left, and longer")
    with replacing(tmp_path / "state.pt") as temporary:
        temporary.write_text("new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("state.pt", "new")]


def test_processes_that_share_a_target_do_not_share_the_file_they_write(tmp_path):
    with replacing(tmp_path / "full_sft_512.pth", shared=True) as temporary:
        temporary.write_text("new")
        assert str(os.getpid()) in temporary.name
