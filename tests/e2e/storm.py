"""A seeded storm over the real stack: faults every other second while jobs come in, and what must hold afterwards."""

import contextlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import psutil
import redis
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.utils import timezone

from jobs.models import Attempt, Device, Job
from jobs.services.lifecycle import NotPossible, request_cancel, request_yield
from jobs.services.wake import publish
from jobs.stack.broker import socket_path
from jobs.stack.processes import Child
from tests.e2e.live_stack import LiveStack, asked, kill_tree, shared_devices, shared_jobs
from tests.e2e.postgres_server import PostgresServer

KINDS = ("ok", "ok", "ok", "ok", "saver", "saver", "exit1", "segv", "ignore_sigterm", "grandchild")
OWNERS = ("ada", "bob", "eve")
PAUSE = (1.0, 3.0)  # seconds between two faults
AT_FIRST, EVERY = 9, 6.0  # jobs, and the seconds until another one
LENGTH = (40, 130)  # steps of a tenth of a second: most jobs outlast a lease and a restart
FREEZE, DRAIN, AWAY = 9.0, 5.0, (2.0, 9.0)  # seconds; a lease is 6
REVIVE = 1.0  # seconds until something dead is started again
DRAINED = 180.0  # seconds in which the queue must be empty once all is well again


class Storm:
    """Faults and jobs in the order that a seed gives."""

    def __init__(self, stack: LiveStack, seed: int, server: PostgresServer | None) -> None:
        self.stack, self.server, self.random = stack, server, random.Random(seed)
        self.injected: Counter[str] = Counter()
        self.jobs: list[Job] = []
        self._later: list[tuple[float, Callable[[], object]]] = []
        self._dead_since: dict[str, float] = {}
        self._faults = [
            *(self.kill_worker, self.kill_pool_process, self.kill_guard, self.kill_trainer, self.freeze_supervisor),
            *(self.stop_worker, self.kill_janitor, self.kill_broker, self.flush_broker, self.send_duplicates),
            *(self.cancel_job, self.yield_job, self.drain_device, *([self.kill_database] if server else [])),
        ]

    def rage(self, seconds: float) -> None:
        """Submit jobs and inject faults for so long."""
        for _ in range(AT_FIRST):
            self.submit()
        begun, next_job = time.monotonic(), EVERY
        while (passed := time.monotonic() - begun) < seconds:
            self._live_through(self.random.uniform(*PAUSE))
            if passed > next_job:
                self._try(self.submit)
                next_job += EVERY
            fault = self.random.choice(self._faults)
            if self._try(fault):
                self.injected[fault.__name__] += 1

    def calm(self) -> float:
        """Put everything right, and wait for the queue to drain; return how many seconds that took."""
        if self.server:
            self.server.start()
        connection.close()  # the server may have been killed since it was last used
        for _, undo in self._later:
            undo()
        self._later.clear()
        Device.objects.update(drained_at=None)
        begun = time.monotonic()
        while Job.objects.filter(status__in=Job.UNFINISHED).exists() and time.monotonic() - begun < DRAINED:
            self._live_through(0.5)
            for job in Job.objects.filter(status=Job.Status.QUEUED, depends_on__status__in=Job.FINISHED):
                if job.dependency_rule == job.DependencyRule.SUCCESS and job.depends_on.status != Job.Status.COMPLETED:
                    request_cancel(job, by=None)
        return time.monotonic() - begun

    def submit(self) -> bool:
        pick = self.random
        wishes: dict[str, object] = {"owner": pick.choice(OWNERS), "device_count": pick.choice((1, 1, 1, 2))}
        if self.jobs and pick.random() < 0.2:
            wishes |= {"depends_on": pick.choice(self.jobs), "dependency_rule": pick.choice(Job.DependencyRule.values)}
        self.jobs.append(asked(pick.choice(KINDS), steps=pick.randint(*LENGTH), **wishes))
        return True

    def kill_worker(self) -> bool:
        return _signal(self._worker().pid, signal.SIGKILL)

    def stop_worker(self) -> bool:
        return _signal(self._worker().pid, signal.SIGTERM)

    def kill_pool_process(self) -> bool:
        return _signal(self._below(1), signal.SIGKILL)

    def kill_guard(self) -> bool:
        return _signal(self._below(2), signal.SIGKILL)

    def kill_trainer(self) -> bool:
        return _signal(self._below(3), signal.SIGKILL)

    def freeze_supervisor(self) -> bool:
        pid = self._below(1)
        self._in(FREEZE, lambda: _signal(pid, signal.SIGCONT))
        return _signal(pid, signal.SIGSTOP)

    def kill_janitor(self) -> bool:
        return _signal(self.stack.janitor.pid, signal.SIGKILL)

    def kill_broker(self) -> bool:
        if not self.stack.broker.is_running:
            return False
        kill_tree(self.stack.broker)
        return True

    def flush_broker(self) -> bool:
        with contextlib.suppress(redis.RedisError):
            redis.Redis(unix_socket_path=str(socket_path(self.stack.home))).flushall()
            return True
        return False

    def send_duplicates(self) -> bool:
        publish(*[f"nightshift.gpu{index}@box" for index in range(len(self.stack.workers))] * 5)
        return True

    def cancel_job(self) -> bool:
        job = self.random.choice(self.jobs)
        try:
            request_cancel(job, by=None)
        except NotPossible:
            return False
        return True

    def yield_job(self) -> bool:
        return any(request_yield(job, "a storm") for job in Job.objects.filter(status=Job.Status.RUNNING)[:1])

    def drain_device(self) -> bool:
        device = Device.objects.filter(key=f"GPU-{self.random.randrange(len(self.stack.workers))}")
        self._in(DRAIN, lambda: device.update(drained_at=None))
        return bool(device.update(drained_at=timezone.now()))

    def kill_database(self) -> bool:
        if self.server is None or not self.server.is_running:
            return False
        self.server.kill()
        self._in(self.random.uniform(*AWAY), self.server.start)
        return True

    def _worker(self) -> Child:
        return self.random.choice(self.stack.workers)

    def _below(self, depth: int) -> int | None:
        """Return a process under some worker: 1 its pool process, 2 the guard, 3 the trainer; ``None`` when idle."""
        for worker in self.random.sample(self.stack.workers, len(self.stack.workers)):
            with contextlib.suppress(psutil.Error, IndexError, ValueError):
                process = psutil.Process(worker.pid or 0)
                for _ in range(depth):
                    process = process.children()[0]
                return process.pid
        return None

    def _in(self, seconds: float, undo: Callable[[], object]) -> None:
        self._later.append((time.monotonic() + seconds, undo))

    def _live_through(self, seconds: float) -> None:
        """Let time pass, in which the dead are started again as ``manage.py up`` does it, and faults end."""
        until = time.monotonic() + seconds
        while (now := time.monotonic()) < until:
            for entry in [entry for entry in self._later if entry[0] <= now]:
                if self._try(entry[1], default=True):
                    self._later.remove(entry)
            for child in self.stack.children:
                self._revive(child, now)
            time.sleep(0.1)

    def _revive(self, child: Child, now: float) -> None:
        if child.is_running:
            self._dead_since.pop(str(child), None)
        elif now - self._dead_since.setdefault(str(child), now) > REVIVE:
            child.finish(0)
            child.start()

    def _try(self, action: Callable[[], object], *, default: bool = False) -> bool:
        """Act, unless the database is away."""
        try:
            return bool(action()) or default
        except (DatabaseError, InterfaceError):
            connection.close()
            return False


@dataclass
class Report:
    """What a storm did, and what it broke: nothing, or lists of what by the name of the rule."""

    seed: int
    injected: Counter[str]
    outcomes: Counter[str]
    attempts: int
    drained_in: float
    broken: dict[str, list[object]] = field(default_factory=dict)


RULES: dict[str, Callable[[LiveStack], list[object]]] = {
    "job ran twice at once": lambda stack: [*shared_jobs(stack.lives())],
    "device shared": lambda stack: [*shared_devices(stack.lives())],
    "row unfinished": lambda _: [
        (str(job), job.status, job.depends_on) for job in Job.objects.filter(status__in=Job.UNFINISHED)
    ],
    "process left": lambda stack: [*stack.processes()],
    "slot held": lambda _: [str(device) for device in Device.objects.exclude(attempt=None)],
    "completed without an end": lambda stack: [str(job) for job in _completed() if stack.counts(job)[1] < 1],
    "ran after completion": lambda stack: [
        str(job) for job in _completed() if stack.ledger(job)[-1][2] > job.finished_at.timestamp()
    ],
    "metrics with a gap": lambda _: [
        (str(job), steps)
        for job in _completed()
        if (steps := list(job.metrics.order_by("step").values_list("step", flat=True)))
        != list(range(1, job.params["max_steps"] + 1))
    ],
    "attempts inconsistent": lambda _: [str(job) for job in Job.objects.all() if not _consistent(job)],
}


def weather(stack: LiveStack, seed: int, seconds: float, server: PostgresServer | None = None) -> Report:
    """Run the stack through a storm and back to calm; return what happened."""
    storm = Storm(stack, seed, server)
    try:
        stack.start()
        storm.rage(seconds)
        drained_in = storm.calm()
    finally:
        stack.stop()
    time.sleep(1)  # a guard whose supervisor is gone still ends its group
    outcomes = Counter(Job.objects.values_list("status", flat=True))
    broken = {name: found for name, rule in RULES.items() if (found := rule(stack))}
    return Report(seed, storm.injected, outcomes, Attempt.objects.count(), drained_in, broken)


def _completed() -> list[Job]:
    return list(Job.objects.filter(status=Job.Status.COMPLETED))


def _consistent(job: Job) -> bool:
    """Tell whether the attempts are numbered, ended, and tell the job's own story."""
    attempts = list(job.attempts.order_by("number"))
    lost = sum(attempt.outcome == Attempt.Outcome.LOST for attempt in attempts)
    completed = [attempt.number for attempt in attempts if attempt.outcome == Attempt.Outcome.COMPLETED]
    return (
        [attempt.number for attempt in attempts] == list(range(1, len(attempts) + 1))
        and all(attempt.ended_at for attempt in attempts)
        and lost == job.requeues + (job.status == Job.Status.LOST)
        and job.requeues <= settings.NIGHTSHIFT_MAX_REQUEUES
        and completed == ([len(attempts)] if job.status == Job.Status.COMPLETED else [])
    )


def _signal(pid: int | None, number: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        if pid is not None:
            os.kill(pid, number)
            return True
    return False
