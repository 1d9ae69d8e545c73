"""The stack of one machine: broker, web, janitor and one worker per device, started and stopped together."""

import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from types import TracebackType
from typing import Self

from django.conf import settings
from django.db import connections

from jobs.stack.broker import broker_answers, broker_url, server_command, without_password
from jobs.stack.devices import find_devices, worker_command
from jobs.stack.lock import StackLock, require_free_port
from jobs.stack.prepare import ADMIN_NAME, collect_static, ensure_admin, prepare_database
from jobs.stack.processes import Child, Program, stop_together

HOST = "127.0.0.1"
START_TIMEOUT = 60.0  # seconds until the broker or the admin must answer
OTHERS_TIMEOUT = 10.0  # seconds for a broker that somebody else runs
POLL = 0.1  # seconds
WEB_WORKERS, WEB_THREADS = 2, 4


class NotStarted(RuntimeError):
    """A part of the stack does not answer."""


class Stack:
    """A context in which the stack runs; leaving it stops every part in order."""

    def __init__(self, port: int, *, say: Callable[[str], None], stopping: Callable[[], bool]) -> None:
        self.port = port
        self.say = say
        self.stopping = stopping
        self.address = f"http://{HOST}:{port}/admin/"
        self.lock = StackLock(settings.NIGHTSHIFT_HOME, self.address)
        self.broker: list[Child] = []
        self.web: list[Child] = []
        self.janitor: list[Child] = []
        self.workers: list[Child] = []

    def __enter__(self) -> Self:
        """Start everything and wait until the admin answers.

        Raises:
            AlreadyRunning, PortTaken: somebody else is there.
            NoBroker, NoDatabase, NotStarted: a part cannot run.
        """
        self.lock.__enter__()
        try:
            require_free_port(HOST, self.port)
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        """Stop the workers first, so that running jobs save and go back to the queue; the broker last."""
        if self.workers:
            self.say("Stopping: running jobs save a checkpoint and go back to the queue.")
        for group in (self.workers, self.janitor, self.web, self.broker):
            stop_together(group)
        self.lock.__exit__()

    def tend(self) -> None:
        """Start again what has died, and say so."""
        for child in (*self.broker, *self.web, *self.janitor, *self.workers):
            if news := child.revive():
                self.say(news)

    def _start(self) -> None:
        self.broker = self._launch(broker_programs())
        prepare_database()
        collect_static()
        self._announce_admin(ensure_admin())
        connections.close_all()  # the children are to find no transaction of this process
        self.web = self._launch([web_program(self.port)])
        self._wait_for("the broker", lambda: broker_answers(settings.CELERY_BROKER_URL), self.broker)
        self.janitor = self._launch([janitor_program()])
        self.workers = self._launch(worker_programs())
        self._wait_for("the admin", lambda: admin_answers(self.address), self.web)
        if not self.stopping():
            self.say(f"Nightshift serves {self.address} with {', '.join(str(worker) for worker in self.workers)}.")

    def _launch(self, programs: list[Program]) -> list[Child]:
        if self.stopping():
            return []
        children = [Child(program, settings.NIGHTSHIFT_HOME / "logs") for program in programs]
        for child in children:
            child.start()
        return children

    def _announce_admin(self, password: str | None) -> None:
        if password is not None:
            self.say(f"First admin account: {ADMIN_NAME}   one-time password: {password}   (shown only now; change it)")

    def _wait_for(self, name: str, answers: Callable[[], bool], children: list[Child]) -> None:
        timeout = START_TIMEOUT if children else OTHERS_TIMEOUT
        deadline = time.monotonic() + timeout
        while not self.stopping() and not answers():
            self.tend()
            if time.monotonic() > deadline:
                where = ", ".join(str(child.log) for child in children) or without_password(settings.CELERY_BROKER_URL)
                raise NotStarted(f"{name} does not answer after {timeout:.0f} s: see {where}")
            time.sleep(POLL)


def broker_programs() -> list[Program]:
    """Return the embedded broker, or nothing where the team has its own."""
    home = settings.NIGHTSHIFT_HOME
    if broker_url("", home) != settings.CELERY_BROKER_URL:
        return []
    return [Program(name="broker", argv=server_command(home))]


def web_program(port: int) -> Program:
    argv = [sys.executable, "-m", "gunicorn", "webadmin.wsgi", "--bind", f"{HOST}:{port}", "--no-control-socket"]
    argv += ["--workers", str(WEB_WORKERS), "--worker-class", "gthread", "--threads", str(WEB_THREADS)]
    return Program(name="web", argv=[*argv, "--graceful-timeout", "5"])


def janitor_program() -> Program:
    return Program(name="janitor", argv=[sys.executable, "manage.py", "janitor"])


def worker_programs() -> list[Program]:
    """Return one worker per device of this machine; it stops once its trainer has saved."""
    timeout = settings.NIGHTSHIFT_GRACE + 15
    programs = []
    for device in find_devices():
        argv, env = worker_command(device)
        name = f"worker-{device.worker_name.partition('@')[0]}"
        programs.append(Program(name=name, argv=argv, env=env, stop_timeout=timeout))
    return programs


def admin_answers(address: str) -> bool:
    """Tell whether the log-in page is served."""
    try:
        with urllib.request.urlopen(f"{address}login/", timeout=5) as response:  # noqa: S310  # our own http address
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False
