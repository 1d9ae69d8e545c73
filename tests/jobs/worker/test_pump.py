"""The log that a trainer's output is carried into."""

import errno
import os
import subprocess
from pathlib import Path

import pytest

from jobs.worker import pump
from jobs.worker.pump import KEPT, Pump

needs_mount = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a small disk")


def pumped(tmp_path, data, *, limit=1_000_000):
    source, sink = os.pipe()
    one = Pump(source, tmp_path / "log.txt", limit=limit)
    one.start()
    for piece in data:
        os.write(sink, piece)
    os.close(sink)
    one.finish()
    return (tmp_path / "log.txt").read_bytes()


def unread(log, *, limit=1_000_000):
    return Pump(os.open(os.devnull, os.O_RDONLY), log, limit=limit)


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 64 KiB, all of whose room but 8 KiB is taken by the file ``ballast``."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=True)
    try:
        (disk / "ballast").write_bytes(b"x" * 56 * 1024)
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def test_the_log_holds_the_output_byte_for_byte_and_is_continued(tmp_path):
    assert pumped(tmp_path, [b"a\xff\x00", b"\r50%\n"]) == b"a\xff\x00\r50%\n"
    assert pumped(tmp_path, [b"again\n"]) == b"a\xff\x00\r50%\nagain\n"


def test_a_full_log_says_so_once(tmp_path):
    log = pumped(tmp_path, [b"x" * 8, b"y" * 8, b"z" * 8], limit=10)
    assert log.startswith(b"xxxxxxxx")
    assert log.count(b"[the log ends here: its limit is 10 bytes]") == 1
    assert b"z" not in log


def test_an_attempt_that_finds_the_log_full_says_so_instead_of_nothing(tmp_path):
    (tmp_path / "log.txt").write_bytes(b"x" * 12)
    assert pumped(tmp_path, [b"y"], limit=10) == b"x" * 12 + b"\n[the log ends here: its limit is 10 bytes]\n"


def test_the_end_of_the_output_is_known_beyond_the_logs_limit(tmp_path):
    one = unread(tmp_path / "log.txt", limit=10)
    for piece in (b"x" * KEPT, b"ValueError: ", b"no \xff\n"):
        one._keep(piece)
    assert one.end == "x" * (KEPT - 17) + "ValueError: no \ufffd\n"


def test_a_full_disk_costs_lines_and_says_how_many(tmp_path, monkeypatch):
    answers = iter([OSError(errno.ENOSPC, "No space left on device")] * 2)
    monkeypatch.setattr(pump.os, "write", refusing(answers))
    one = unread(tmp_path / "log.txt")
    for piece in (b"lost!", b"lost too", b"kept\n"):
        one._keep(piece)
    assert (tmp_path / "log.txt").read_bytes() == b"\n[13 bytes are missing here: the disk was full]\nkept\n"


def test_the_limits_mark_is_written_again_when_the_disk_cut_it(tmp_path, monkeypatch):
    real, most = os.write, iter([4, 1000])
    monkeypatch.setattr(pump.os, "write", lambda log, data: real(log, data[: next(most)]))
    one = unread(tmp_path / "log.txt", limit=4)
    for piece in (b"abcdef", b"gh", b"i"):
        one._keep(piece)
    assert (tmp_path / "log.txt").read_bytes() == b"abcd\n[the log ends here: its limit is 4 bytes]\n"


def test_a_write_that_takes_only_a_part_is_counted_to_the_byte(tmp_path, monkeypatch):
    real, most = os.write, iter([3, 1000, 1000])
    monkeypatch.setattr(pump.os, "write", lambda log, data: real(log, data[: next(most)]))
    one = unread(tmp_path / "log.txt")
    for piece in (b"abcdef", b"gh\n", b"i\n"):
        one._keep(piece)
    assert (tmp_path / "log.txt").read_bytes() == b"abc\n[3 bytes are missing here: the disk was full]\ngh\ni\n"


def test_a_mark_that_the_disk_cut_is_written_anew_with_all_that_is_missing(tmp_path, monkeypatch):
    real, most = os.write, iter([3, 5, 1000])
    monkeypatch.setattr(pump.os, "write", lambda log, data: real(log, data[: next(most)]))
    one = unread(tmp_path / "log.txt")
    for piece in (b"abcdef", b"gh\n", b"i\n"):
        one._keep(piece)
    assert (tmp_path / "log.txt").read_bytes() == (
        b"abc\n[3 b\n[6 bytes are missing here: the disk was full]\ni\n"
    )  # fmt: skip


def test_a_log_that_cannot_even_be_opened_does_not_stop_the_trainer(tmp_path):
    one = unread(tmp_path / "absent" / "log.txt")
    one._keep(b"lost!")
    (tmp_path / "absent").mkdir()
    one._keep(b"kept\n")
    log = (tmp_path / "absent" / "log.txt").read_bytes()
    assert log == b"\n[5 bytes are missing here: the disk was full]\nkept\n"


@needs_mount
def test_a_real_disk_that_fills_up_and_gets_room_again_keeps_what_fits(small_disk):
    one = unread(small_disk / "log.txt")
    lines = [f"{number:07d}\n".encode() * 512 for number in range(6)]  # 4 KiB each, of which two fit
    for piece in lines[:4]:
        one._keep(piece)
    (small_disk / "ballast").unlink()
    for piece in lines[4:]:
        one._keep(piece)
    gap = b"\n[8192 bytes are missing here: the disk was full]\n"
    assert (small_disk / "log.txt").read_bytes() == b"".join([*lines[:2], gap, *lines[4:]])


@needs_mount
def test_a_disk_that_stays_full_to_the_end_keeps_what_fitted_and_the_end_of_the_output_is_known(small_disk):
    source, sink = os.pipe()
    one = Pump(source, small_disk / "log.txt", limit=1_000_000)
    one.start()
    os.write(sink, b"1234567\n" * 2048)
    os.write(sink, b"ValueError: no\n")
    os.close(sink)
    one.finish()
    assert (small_disk / "log.txt").read_bytes() == b"1234567\n" * 1024
    assert one.end.endswith("1234567\nValueError: no\n")


@needs_mount
def test_a_disk_that_gets_room_after_the_last_line_still_says_what_is_missing(small_disk):
    source, sink = os.pipe()
    one = Pump(source, small_disk / "log.txt", limit=1_000_000)
    one._keep(b"1234567\n" * 2048)
    (small_disk / "ballast").unlink()
    os.close(sink)
    one.start()
    one.finish()
    log = Path(small_disk / "log.txt").read_bytes()
    assert log == b"1234567\n" * 1024 + b"\n[8192 bytes are missing here: the disk was full]\n"


def test_a_process_that_keeps_the_pipe_open_does_not_hold_up_the_end(tmp_path):
    source, sink = os.pipe()
    one = Pump(source, tmp_path / "log.txt", limit=1000)
    one.start()
    os.write(sink, b"last words\n")
    one.finish()
    os.close(sink)
    assert (tmp_path / "log.txt").read_bytes() == b"last words\n"


def refusing(answers):
    """Return a ``write`` that raises each of ``answers`` first."""
    real = os.write

    def write(descriptor, data):
        for error in answers:
            raise error
        return real(descriptor, data)

    return write
