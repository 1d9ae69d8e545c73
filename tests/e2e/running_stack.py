"""The stack as a person starts it: ``manage.py up`` in a process of its own, its lines read as they come."""

import os
import queue
import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil

REPOSITORY = Path(__file__).resolve().parents[2]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class RunningStack:
    """One launcher and what it printed."""

    def __init__(self, home: Path, *, port: int | None = None, **environment: str) -> None:
        self.home = home
        self.port = port or free_port()
        self.lines: list[str] = []
        self.environment = os.environ | {
            "NIGHTSHIFT_HOME": str(home),
            "NIGHTSHIFT_ENV_FILE": str(home / "no.env"),
            "SECRET_KEY": secrets.token_urlsafe(50),
            "NIGHTSHIFT_GRACE": "10",
            **environment,
        }
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "up", "--port", str(self.port)],
            cwd=REPOSITORY,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._new: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/admin/"

    @property
    def password(self) -> str:
        """The one-time password of the first admin account."""
        return self.wait_for(r"one-time password: (\S+)").group(1)

    def wait_for(self, pattern: str, seconds: float = 60.0) -> re.Match[str]:
        """Return the first match in the lines so far or to come."""
        deadline = time.monotonic() + seconds
        while True:
            for line in self.lines:
                if found := re.search(pattern, line):
                    return found
            try:
                self.lines.append(self._new.get(timeout=max(0.01, deadline - time.monotonic())))
            except queue.Empty:
                raise AssertionError(f"no line matched {pattern!r} in {seconds} s:\n" + "".join(self.lines)) from None

    def until_served(self) -> "RunningStack":
        self.wait_for("Nightshift serves")
        return self

    def descendants(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def manage(self, *arguments: str) -> str:
        """Run another management command on the same state, and return what it printed."""
        command = [sys.executable, "manage.py", *arguments]
        run = subprocess.run(command, cwd=REPOSITORY, env=self.environment, capture_output=True, text=True, timeout=120)
        assert run.returncode == 0, run.stderr
        return run.stdout

    def stop(self, number: int = signal.SIGINT) -> int:
        """Send a signal, wait for the end, and return the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(60)
        finally:
            self.process.kill()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._new.put(line)


def still_alive(processes: list[psutil.Process], seconds: float = 10.0) -> list[psutil.Process]:
    """Return those that have not ended after a while."""
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    return [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]
