"""The embedded broker: its address, its folder's mode, and that it serves."""

import stat
import subprocess
import time
from pathlib import Path

import pytest

from jobs.stack.broker import broker_answers, broker_url, server_command, socket_path, without_password


def test_a_broker_of_the_team_wins_over_the_embedded_one():
    assert broker_url("redis://broker:6379/0", Path("/state")) == "redis://broker:6379/0"
    assert broker_url("", Path("/state")) == "redis+socket:///state/broker.sock?virtual_host=0"


def test_a_socket_path_too_long_for_the_kernel_moves_to_a_folder_of_ours():
    long = socket_path(Path("/" + "x" * 120))
    assert len(str(long)) <= 100
    assert long == socket_path(Path("/" + "x" * 120))
    assert long != socket_path(Path("/" + "y" * 120))


def test_an_address_is_shown_without_its_password():
    assert without_password("redis://:geheim@broker:6379/0") == "redis://broker:6379/0"
    assert without_password("redis://broker:6379/0") == "redis://broker:6379/0"


@pytest.mark.e2e
@pytest.mark.parametrize("name", ["home", "night shift #1 100% + ?"])
def test_the_embedded_broker_serves_only_its_owner_through_a_socket(tmp_path, name):
    home = tmp_path / name
    url = broker_url("", home)
    assert not broker_answers(url)
    server = subprocess.Popen(server_command(home), stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 10
        while not broker_answers(url) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert broker_answers(url)
        assert stat.S_IMODE(socket_path(home).stat().st_mode) == 0o700
        assert stat.S_IMODE(socket_path(home).parent.stat().st_mode) == 0o700
    finally:
        server.terminate()
        server.wait()
