"""The real stack around a test: broker, janitor and worker processes on a state folder and a database."""

import contextlib
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import psutil
from django.conf import settings

from jobs.models import Device, Job, Worker
from jobs.stack.broker import broker_answers, server_command
from jobs.stack.devices import FoundDevice, cpu_device, worker_command
from jobs.stack.processes import Child, Program, stop_together
from tests.jobs.rows import queued

TRAINER = Path(__file__).with_name("trainer.py")
SECONDS = {"NIGHTSHIFT_LEASE": "6", "NIGHTSHIFT_HEARTBEAT": "1", "NIGHTSHIFT_GRACE": "2"}


@dataclass(frozen=True)
class Entry:
    """One line that a trainer wrote into the ledger; ``devices`` are those that it was given."""

    job: int
    word: str
    devices: tuple[str, ...]
    pid: int
    time: float


@dataclass(frozen=True)
class Life:
    """One trainer process, from its first line to its last."""

    job: int
    devices: tuple[str, ...]
    pid: int
    first: float
    last: float

    def meets(self, other: "Life") -> bool:
        return self.first < other.last and other.first < self.last


class LiveStack:
    """Processes that a test may kill and start again: one worker for each device."""

    def __init__(self, home: Path, environment: dict[str, str], devices: list[FoundDevice] | None = None) -> None:
        self.home, self.environment = home, environment
        devices = devices or [cpu_device()]
        self.queue = devices[0].queue
        self.broker = self._child("broker", server_command(home), 5)
        self.janitor = self._child("janitor", [sys.executable, "manage.py", "janitor"], 5)
        self.workers = [self._worker(device) for device in devices]

    def _worker(self, device: FoundDevice) -> Child:
        argv, pinned = worker_command(device)
        return self._child(device.worker_name.partition("@")[0], argv, 20, **pinned)

    def _child(self, name: str, argv: list[str], stop_timeout: float, **more: str) -> Child:
        program = Program(name=name, argv=argv, env=self.environment | more, stop_timeout=stop_timeout)
        return Child(program, self.home / "logs")

    @property
    def worker(self) -> Child:
        return self.workers[0]

    @property
    def children(self) -> list[Child]:
        return [self.broker, self.janitor, *self.workers]

    def start(self) -> None:
        self.start_broker()
        self.janitor.start()
        for worker in self.workers:
            worker.start()
        for worker in self.workers:
            wait_until_registered(worker)

    def start_broker(self) -> None:
        self.broker.start()
        wait_for(lambda: broker_answers(settings.CELERY_BROKER_URL), 10)

    def kill_broker(self) -> None:
        kill_tree(self.broker)

    def start_worker(self) -> None:
        self.worker.start()
        wait_until_registered(self.worker)

    def kill_worker(self) -> None:
        kill_tree(self.worker)

    def stop(self) -> None:
        for group in ([*self.workers, self.janitor], [self.broker]):
            stop_together(group)

    def entries(self) -> list[Entry]:
        """Return what all trainers wrote, in order."""
        path = self.home / "ledger.txt"
        lines = [line.split(" ") for line in path.read_text().splitlines()] if path.exists() else []
        return [
            Entry(int(job), " ".join(words), tuple(devices.split(",")), int(pid), float(at))
            for job, *words, devices, pid, at in lines
        ]

    def ledger(self, job: Job) -> list[tuple[str, int, float]]:
        """Return what the trainers of a job wrote: (word, pid, time) each."""
        return [(entry.word, entry.pid, entry.time) for entry in self.entries() if entry.job == job.pk]

    def words(self, job: Job) -> list[str]:
        return [word for word, _, _ in self.ledger(job)]

    def counts(self, job: Job) -> tuple[int, int]:
        """Return how often the job's trainers started, and how often they came to their end."""
        return self.words(job).count("START"), self.words(job).count("END")

    def trainer(self, job: Job) -> psutil.Process:
        """Return the trainer of the job's newest attempt."""
        return psutil.Process(self.ledger(job)[-1][1])

    def supervisor(self, job: Job) -> int:
        """Return the pool process above the trainer and its guard."""
        return psutil.Process(self.trainer(job).ppid()).ppid()

    def lives(self) -> list[Life]:
        grouped: dict[tuple[int, int], list[Entry]] = defaultdict(list)
        for entry in self.entries():
            grouped[entry.job, entry.pid].append(entry)
        return [Life(job, e[0].devices, pid, e[0].time, e[-1].time) for (job, pid), e in grouped.items()]

    def processes(self) -> list[tuple[int, list[str]]]:
        """Return everything that lives for this state folder, this process excepted."""
        mark = f"NIGHTSHIFT_HOME={self.home}".encode()
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(OSError, psutil.Error):
                environment = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
                if mark in environment and process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE:
                    found.append((process.pid, process.cmdline()[-4:]))
        return found


@contextlib.contextmanager
def running(stack: LiveStack) -> Iterator[LiveStack]:
    """Run the stack; afterwards nothing ran twice, no device was shared, and nothing is left behind."""
    try:
        stack.start()
        yield stack
        assert not Job.objects.filter(status=Job.Status.RUNNING).exists()
        assert not Device.objects.exclude(attempt=None).exists(), "a device is still held"
    finally:
        stack.stop()
    wait_for(lambda: not stack.processes(), 5, lambda: f"left behind: {stack.processes()}")
    assert (shared_jobs(stack.lives()), shared_devices(stack.lives())) == ([], [])


def shared_jobs(lives: list[Life]) -> list[tuple[Life, Life]]:
    """Return the pairs of processes that ran one job at the same time."""
    return [(a, b) for a, b in combinations(lives, 2) if a.job == b.job and a.meets(b)]


def shared_devices(lives: list[Life]) -> list[tuple[Life, Life]]:
    """Return the pairs of processes that had a device at the same time."""
    return [(a, b) for a, b in combinations(lives, 2) if set(a.devices) & set(b.devices) and a.meets(b)]


def pretended_gpus(count: int) -> list[FoundDevice]:
    """Return devices that no driver knows, of one host."""
    return [
        FoundDevice(key=f"GPU-{index}", kind="gpu", host="box", name=f"Pretended {index}", index=index)
        for index in range(count)
    ]


def asked(fault: str = "ok", *, steps: int = 5, **wishes: object) -> Job:
    """Queue a job of the stand-in trainer."""
    return queued("grpo", params={"save_weight": fault, "max_steps": steps}, **wishes)


def kill_tree(child: Child) -> None:
    """End a process by SIGKILL, and what it leads."""
    os.kill(child.pid, signal.SIGKILL)
    child.finish(0)


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it may go between any two questions
        return True


def wait_until_registered(worker: Child) -> None:
    wait_for(lambda: Worker.objects.filter(pid=worker.pid, stopped_at=None).exists(), 30)


def wait_for(
    condition: Callable[[], object], seconds: float, describe: Callable[[], str] = lambda: "timed out"
) -> float:
    """Wait until ``condition`` holds; return how long that took."""
    start = time.monotonic()
    while not condition():
        if time.monotonic() - start > seconds:
            raise AssertionError(describe())
        time.sleep(0.02)
    return time.monotonic() - start


def wait_for_status(job: Job, status: str, seconds: float = 20) -> float:
    """Wait until the job has the status; return how long that took."""

    def reached() -> bool:
        job.refresh_from_db()
        return job.status == status

    return wait_for(reached, seconds, lambda: f"{job} is {job.status}: {job.cause}, not {status}")


def wait_for_step(live: LiveStack, job: Job, step: int) -> None:
    wait_for(lambda: f"STEP {step}" in live.words(job), 20)
