"""Children are tied to their launcher, started again when they die, and stopped with all that they started."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from jobs.stack.processes import REPOSITORY, Child, Program, stop_together


def gone(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it may go between any two questions
        return True


def eventually(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., Child]]:
    children: list[Child] = []

    def start(code: str, **options: float) -> Child:
        child = Child(Program(name="sleeper", argv=python(code), **options), tmp_path)
        children.append(child)
        child.start()
        return child

    yield start
    stop_together(children)


def test_output_goes_to_the_childs_own_log(started):
    child = started("print('hello')")
    assert eventually(lambda: child.log.read_text() == "hello\n")


def test_a_dead_child_is_announced_and_started_again(started):
    child = started("import time; time.sleep(60)")
    first = child.pid
    psutil.Process(first).kill()
    assert eventually(lambda: not child.is_running)
    assert child.revive() == f"sleeper died of SIGKILL; starting it again in 2 s (log: {child.log})"
    assert child.revive() is None
    assert eventually(lambda: child.revive() == "sleeper is started again", 5)
    assert child.is_running
    assert child.pid != first


def test_each_death_doubles_the_delay_up_to_half_a_minute(started):
    child = started("pass")
    delays = []
    for _ in range(6):
        assert eventually(lambda: not child.is_running)
        child.revive()
        delays.append(child.delay)
        child.start()
    assert delays == [2, 4, 8, 16, 30, 30]


def test_a_child_that_ignores_sigterm_is_killed_after_its_time(started):
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    child = started(code, stop_timeout=0.5)
    assert eventually(lambda: child.log.read_text() == "up\n")
    pid, start = child.pid, time.monotonic()
    stop_together([child])
    assert 0.4 < time.monotonic() - start < 3
    assert not psutil.pid_exists(pid)


def test_what_a_child_started_ends_with_it(started):
    grandchild = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])"
    child = started(f"{grandchild}; print(p.pid, flush=True); p.wait()")
    assert eventually(lambda: child.log.read_text().endswith("\n"))
    pid = int(child.log.read_text())
    stop_together([child])
    assert eventually(lambda: gone(pid))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a child to its parent")
def test_a_child_dies_with_a_launcher_that_is_killed(tmp_path):
    code = f"""
import sys, time
from pathlib import Path
from jobs.stack.processes import Child, Program
child = Child(Program(name="c", argv=[sys.executable, "-c", "import time; time.sleep(60)"]), Path({str(tmp_path)!r}))
child.start(); time.sleep(0.5); print(child.pid, flush=True); time.sleep(60)
"""
    launcher = subprocess.Popen(python(code), stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
    assert launcher.stdout is not None
    pid = int(launcher.stdout.readline())
    launcher.send_signal(signal.SIGKILL)
    launcher.wait()
    assert eventually(lambda: gone(pid))
