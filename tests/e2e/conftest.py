"""The real stack around a test: broker, janitor and worker processes on a state folder and a SQLite file."""

import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import environ
import psutil
import pytest
from django.conf import settings as django_settings
from django.core.management import call_command
from django.db import connections
from django.db.utils import load_backend

from jobs.models import Job, Worker
from jobs.stack.broker import broker_answers, server_command
from jobs.stack.devices import cpu_device, worker_command
from jobs.stack.processes import Child, Program, stop_together

TRAINER = Path(__file__).with_name("trainer.py")
SECONDS = {"NIGHTSHIFT_LEASE": "6", "NIGHTSHIFT_HEARTBEAT": "1", "NIGHTSHIFT_GRACE": "2"}


class LiveStack:
    """Processes that a test may kill and start again."""

    def __init__(self, home, environment):
        self.home, self.environment = home, environment | other_database()
        self.queue = cpu_device().queue
        argv, pinned = worker_command(cpu_device())
        self.broker = self._child("broker", server_command(home), 5)
        self.janitor = self._child("janitor", [sys.executable, "manage.py", "janitor"], 5)
        self.worker = self._child("worker", argv, 20, **pinned)

    def _child(self, name, argv, stop_timeout, **more):
        program = Program(name=name, argv=argv, env=self.environment | more, stop_timeout=stop_timeout)
        return Child(program, self.home / "logs")

    def start(self):
        self.start_broker()
        self.janitor.start()
        self.start_worker()

    def start_broker(self):
        self.broker.start()
        wait_for(lambda: broker_answers(django_settings.CELERY_BROKER_URL), 10)

    def start_worker(self):
        self.worker.start()
        wait_for(lambda: Worker.objects.filter(pid=self.worker.pid, stopped_at=None).exists(), 20)

    def kill_worker(self):
        os.kill(self.worker.pid, signal.SIGKILL)
        self.worker.finish(0)

    def stop(self):
        for group in ([self.worker, self.janitor], [self.broker]):
            stop_together(group)

    def ledger(self, job):
        """Return what the trainers of a job wrote: (word, pid, time) each."""
        path = self.home / "ledger.txt"
        lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        return [(" ".join(line[1:-2]), int(line[-2]), float(line[-1])) for line in lines if line[0] == str(job.pk)]

    def words(self, job):
        return [word for word, _, _ in self.ledger(job)]

    def processes(self):
        """Return the pids of everything that lives for this state folder, this process excepted."""
        mark = f"NIGHTSHIFT_HOME={self.home}".encode()
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(OSError, psutil.Error):
                environment = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
                if mark in environment and process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE:
                    found.append((process.pid, process.cmdline()[-4:]))
        return found


def other_database():
    """Return what a process needs in its environment to use the database that TEST_DATABASE_URL names."""
    url = os.environ.get("TEST_DATABASE_URL")
    return {"DATABASE_URL": url} if url else {}


@pytest.fixture
def database(django_db_blocker):
    """The state folder, emptied; its migrated database is this process's: SQLite, or what TEST_DATABASE_URL names."""
    home = Path(django_settings.NIGHTSHIFT_HOME)
    for path in home.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    usual = connections["default"]
    connections["default"] = _connection(usual, home)
    with django_db_blocker.unblock():
        if connections["default"].vendor == "postgresql":
            connections["default"].cursor().execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        call_command("migrate", verbosity=0)
        yield home
        connections["default"].close()
    connections["default"] = usual


def _connection(usual, home):
    if url := os.environ.get("TEST_DATABASE_URL"):
        values = usual.settings_dict | {"OPTIONS": {}} | environ.Env.db_url_config(url)
        return load_backend(values["ENGINE"]).DatabaseWrapper(values, "default")
    return type(usual)({**usual.settings_dict, "NAME": str(home / "nightshift.sqlite3")}, "default")


@pytest.fixture
def live(database, settings, tmp_path):
    """A stack with short leases that runs the stand-in trainer."""
    settings.NIGHTSHIFT_LEASE = float(SECONDS["NIGHTSHIFT_LEASE"])
    yield from _running(LiveStack(database, SECONDS | {"NIGHTSHIFT_TRAINER": str(TRAINER)}))


@pytest.fixture
def live_training(database, settings):
    """A stack that runs the real trainers."""
    yield from _running(LiveStack(database, {"OMP_NUM_THREADS": "1"}))


def _running(stack):
    try:
        stack.start()
        yield stack
        assert not Job.objects.filter(status=Job.Status.RUNNING).exists()
    finally:
        stack.stop()
    wait_for(lambda: not stack.processes(), 5, lambda: f"left behind: {stack.processes()}")


def wait_for(condition, seconds, describe=lambda: "timed out"):
    """Wait until ``condition`` holds; return how long that took."""
    start = time.monotonic()
    while not condition():
        if time.monotonic() - start > seconds:
            raise AssertionError(describe())
        time.sleep(0.02)
    return time.monotonic() - start


def wait_for_status(job, status, seconds=20):
    """Wait until the job has the status; return how long that took."""

    def reached():
        job.refresh_from_db()
        return job.status == status

    return wait_for(reached, seconds, lambda: f"{job} is {job.status}: {job.cause}, not {status}")
