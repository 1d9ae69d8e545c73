"""The second stack of a state folder and the second server of a port learn who was first."""

import json
import os
import socket
import subprocess
import sys

import pytest

from jobs.stack.lock import AlreadyRunning, PortTaken, StackLock, require_free_port, running_address
from jobs.stack.processes import REPOSITORY


def test_the_second_stack_learns_the_pid_and_address_of_the_first(tmp_path):
    with StackLock(tmp_path, "http://127.0.0.1:8000/admin/"), pytest.raises(AlreadyRunning) as refused:
        StackLock(tmp_path, "http://127.0.0.1:9000/admin/").__enter__()
    assert str(refused.value) == f"Nightshift is already running: pid {os.getpid()}, http://127.0.0.1:8000/admin/"


def test_the_address_of_a_running_stack_is_known_and_forgotten_when_it_ends(tmp_path):
    assert running_address(tmp_path) is None
    with StackLock(tmp_path, "http://127.0.0.1:8000/admin/"):
        assert running_address(tmp_path) == "http://127.0.0.1:8000/admin/"
    assert running_address(tmp_path) is None


def test_the_lock_of_a_killed_stack_is_taken_over(tmp_path):
    code = f"""
import os, signal
from pathlib import Path
from jobs.stack.lock import StackLock
StackLock(Path({str(tmp_path)!r}), "http://127.0.0.1:1/").__enter__()
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY).returncode == -9
    assert json.loads((tmp_path / "stack.lock").read_text())["address"] == "http://127.0.0.1:1/"
    with StackLock(tmp_path, "http://127.0.0.1:2/"):
        assert running_address(tmp_path) == "http://127.0.0.1:2/"


def test_a_taken_port_is_refused_with_the_pid_that_has_it():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(PortTaken, match=f"127.0.0.1:{port} is taken by pid {os.getpid()}"):
            require_free_port("127.0.0.1", port)
    require_free_port("127.0.0.1", port)
