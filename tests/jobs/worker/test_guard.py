"""The guard as a real process: status, lifeline, lock, what is left behind."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from jobs.worker import guard

SLEEP = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]
DEAF = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)",
]


class Guarded:
    """A guard, its program and the write end of its lifeline."""

    def __init__(self, locks: str, program: list[str], *, silence: float = 30.0, grace: float = 0.3):
        lifeline, self.lifeline = os.pipe()
        self.guard = subprocess.Popen(
            [sys.executable, "-IS", guard.__file__, locks, str(silence), str(grace), *program],
            stdin=lifeline,
            stdout=subprocess.PIPE,
            env=os.environ | {guard.COOKIE: locks},
            start_new_session=True,
            pass_fds=(),
        )
        os.close(lifeline)

    def wait_until_up(self) -> psutil.Process:
        assert self.guard.stdout.readline() == b"up\n"
        return psutil.Process(self.guard.pid).children()[0]


@pytest.fixture
def guarded(tmp_path):
    started: list[Guarded] = []

    def start(program, locks="device.lock", **times):
        paths = os.pathsep.join(str(tmp_path / name) for name in locks.split())
        started.append(Guarded(paths, program, **times))
        return started[-1]

    yield start
    for one in started:
        if one.guard.poll() is None:
            os.killpg(one.guard.pid, signal.SIGKILL)
        one.guard.wait()
        one.guard.stdout.close()


def is_gone(process):
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def wait_gone(process, seconds):
    start = time.monotonic()
    while not is_gone(process):
        assert time.monotonic() - start < seconds
        time.sleep(0.02)
    return time.monotonic() - start


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("raise SystemExit(0)", 0),
        ("raise SystemExit(4)", 4),
        ("import os; os.kill(os.getpid(), 11)", 128 + 11),
        ("import os; os.kill(os.getpid(), 9)", 128 + 9),
    ],
)
def test_the_guard_ends_with_the_programs_status(guarded, code, status):
    assert guarded([sys.executable, "-c", code]).guard.wait(10) == status


def test_a_lifeline_that_ends_ends_the_program(guarded):
    one = guarded(SLEEP)
    program = one.wait_until_up()
    os.close(one.lifeline)
    wait_gone(program, 2)
    one.guard.wait(2)


def test_a_lifeline_that_falls_silent_ends_even_a_deaf_program(guarded):
    one = guarded(DEAF, silence=0.5, grace=0.3)
    program = one.wait_until_up()
    for _ in range(6):
        os.write(one.lifeline, b".")
        time.sleep(0.1)
    assert not is_gone(program)
    assert wait_gone(program, 3) > 0.5


def test_a_killed_guard_takes_the_program_along(guarded):
    one = guarded(SLEEP)
    program = one.wait_until_up()
    one.guard.kill()
    wait_gone(program, 2)


def test_a_second_guard_waits_for_the_device(guarded):
    first = guarded(SLEEP)
    first.wait_until_up()
    second = guarded([sys.executable, "-c", "print('up')"])
    with pytest.raises(subprocess.TimeoutExpired):
        second.guard.wait(0.6)
    os.killpg(first.guard.pid, signal.SIGKILL)
    assert second.guard.wait(5) == 0


def test_the_same_run_folder_waits_even_on_another_device(guarded):
    first = guarded(SLEEP, "gpu0.lock run12.lock")
    first.wait_until_up()
    second = guarded([sys.executable, "-c", "print('up')"], "gpu1.lock run12.lock")
    with pytest.raises(subprocess.TimeoutExpired):
        second.guard.wait(0.6)
    os.killpg(first.guard.pid, signal.SIGKILL)
    assert second.guard.wait(5) == 0


def test_a_guard_whose_supervisor_dies_while_it_waits_starts_nothing(guarded):
    guarded(SLEEP).wait_until_up()
    second = guarded([sys.executable, "-c", "print('up')"])
    os.close(second.lifeline)
    assert second.guard.wait(5) == guard.NO_LOCK
    assert second.guard.stdout.read() == b""


def test_what_left_the_group_is_killed_at_the_end(guarded):
    code = "import subprocess; print(subprocess.Popen(['sleep', '60'], start_new_session=True).pid, flush=True)"
    one = guarded([sys.executable, "-c", code])
    escaped = psutil.Process(int(one.guard.stdout.readline()))
    one.guard.wait(5)
    wait_gone(escaped, 2)


def test_the_guard_starts_fast(guarded):
    one = guarded([sys.executable, "-IS", "-c", "print('up')"])
    start = time.monotonic()
    one.guard.stdout.readline()
    assert time.monotonic() - start < 1.0
