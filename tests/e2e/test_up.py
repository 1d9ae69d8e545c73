"""``manage.py up``: it serves, refuses a second one, revives what dies, and leaves nothing behind."""

import os
import signal
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.running_stack import RunningStack, still_alive

pytestmark = pytest.mark.e2e


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., RunningStack]]:
    stacks: list[RunningStack] = []

    def start_one(**options: object) -> RunningStack:
        stacks.append(RunningStack(tmp_path / "home", **options))
        return stacks[-1]

    yield start_one
    for stack in stacks:
        stack.stop(signal.SIGTERM)


def test_the_stack_serves_and_ctrl_c_stops_all_of_it(start):
    stack = start().until_served()
    assert len(stack.password) >= 12
    with urllib.request.urlopen(stack.address) as page:
        assert "Log in" in page.read().decode()
    everything = stack.descendants()
    assert len(everything) >= 5  # broker, web and its workers, janitor, Celery and its child
    assert stack.stop(signal.SIGINT) == 0
    assert still_alive(everything, 5) == []
    assert stack.wait_for("Stopped.")


def test_a_second_stack_exits_1_and_names_the_first(start):
    first = start().until_served()
    second = start()
    assert second.process.wait(30) == 1
    assert second.wait_for(f"already running: pid {first.process.pid}, {first.address}")


def test_a_taken_port_exits_1_and_names_who_has_it(start):
    with socket.create_server(("127.0.0.1", 0)) as server:
        stack = start(port=server.getsockname()[1])
        assert stack.process.wait(30) == 1
    assert stack.wait_for(f"is taken by pid {os.getpid()}")


def test_a_second_start_serves_within_ten_seconds_and_prints_no_password(start):
    assert start().until_served().stop() == 0
    begun = time.monotonic()
    second = start().until_served()
    assert time.monotonic() - begun < 10
    assert not any("password" in line for line in second.lines)


def test_what_dies_is_started_again_and_said(start):
    stack = start().until_served()
    janitor = next(child for child in stack.descendants() if "janitor" in child.cmdline())
    janitor.kill()
    assert stack.wait_for("janitor died of SIGKILL")
    assert stack.wait_for("janitor is started again")


def test_nothing_outlives_a_launcher_that_is_killed(start):
    stack = start().until_served()
    everything = stack.descendants()
    stack.stop(signal.SIGKILL)
    assert still_alive(everything) == []


def test_impatient_stops_change_nothing(start):
    stack = start().until_served()
    everything = stack.descendants()
    for _ in range(3):
        stack.process.send_signal(signal.SIGINT)
        time.sleep(0.1)
    assert stack.process.wait(60) == 0
    assert still_alive(everything, 5) == []


def test_a_running_job_goes_back_to_the_queue_and_on_after_the_next_start(start):
    stack = start().until_served()
    stack.manage("shell", "-c", _SUBMIT)
    deadline = time.monotonic() + 60
    while int(stack.manage("shell", "-v", "0", "-c", "from jobs.models import Job; print(Job.objects.get().step)")) < 3:
        assert time.monotonic() < deadline, "the job does not run"
    assert stack.stop() == 0
    state = "from jobs.models import Job; job = Job.objects.get(); print(job.status, job.attempts.count(), job.resume)"
    assert stack.manage("shell", "-v", "0", "-c", state).split() == ["queued", "1", "True"]
    second = start().until_served()
    while second.manage("shell", "-v", "0", "-c", state).split()[0] in ("queued", "running"):
        assert time.monotonic() < deadline + 60, "the job does not end"
        time.sleep(1)
    assert second.manage("shell", "-v", "0", "-c", state).split()[:2] == ["completed", "2"]


_SUBMIT = """
from django.contrib.auth.models import User
from jobs.services.submission import Submission
from jobs.services.submit import submit_job
params = dict(from_weight="none", data_path="../dataset/sft-mini.jsonl", save_dir="runs/weights", batch_size=64,
    hidden_size=64, num_hidden_layers=2, max_steps=150, log_interval=1, save_interval=1000, num_workers=0)
submit_job(Submission(training_type="sft", params=params, owner=User.objects.get()))
"""
