"""The log that a trainer's output is carried into."""

import os

from jobs.worker import pump
from jobs.worker.pump import Pump


def pumped(tmp_path, data, *, limit=1_000_000):
    source, sink = os.pipe()
    one = Pump(source, tmp_path / "log.txt", limit=limit)
    one.start()
    for piece in data:
        os.write(sink, piece)
    os.close(sink)
    one.finish()
    return (tmp_path / "log.txt").read_bytes()


def test_the_log_holds_the_output_byte_for_byte_and_is_continued(tmp_path):
    assert pumped(tmp_path, [b"a\xff\x00", b"\r50%\n"]) == b"a\xff\x00\r50%\n"
    assert pumped(tmp_path, [b"again\n"]) == b"a\xff\x00\r50%\nagain\n"


def test_a_full_log_says_so_once(tmp_path):
    log = pumped(tmp_path, [b"x" * 8, b"y" * 8, b"z" * 8], limit=10)
    assert log.startswith(b"xxxxxxxx")
    assert log.count(b"[the log ends here: its limit is 10 bytes]") == 1
    assert b"z" not in log


def test_a_full_disk_costs_lines_and_says_how_many(tmp_path, monkeypatch):
    real, answers = os.write, iter([OSError(28, "No space left on device")])

    def write(descriptor, data):
        for error in answers:
            raise error
        return real(descriptor, data)

    one = Pump(os.open(os.devnull, os.O_RDONLY), tmp_path / "log.txt", limit=1000)
    monkeypatch.setattr(pump.os, "write", write)
    one._keep(b"lost!")
    one._keep(b"kept\n")
    assert (tmp_path / "log.txt").read_bytes() == b"\n[5 bytes are missing here: the disk was full]\nkept\n"


def test_a_process_that_keeps_the_pipe_open_does_not_hold_up_the_end(tmp_path):
    source, sink = os.pipe()
    one = Pump(source, tmp_path / "log.txt", limit=1000)
    one.start()
    os.write(sink, b"last words\n")
    one.finish()
    os.close(sink)
    assert (tmp_path / "log.txt").read_bytes() == b"last words\n"
