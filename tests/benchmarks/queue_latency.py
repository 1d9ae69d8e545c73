"""What people wait for, as medians, with production settings: ``python -m tests.benchmarks.queue_latency``."""

import os
import shutil
import signal
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
os.environ["LOG_LEVEL"] = "ERROR"
OFTEN, SELDOM = 5, 3  # measurements


def main() -> None:
    """Measure each wait on one stack with a lease of 60 s, a heartbeat of 5 s and a grace of 30 s."""
    import django

    django.setup()
    from django.conf import settings

    from tests.e2e.databases import sqlite_database
    from tests.e2e.live_stack import TRAINER, LiveStack, running

    home = Path(settings.NIGHTSHIFT_HOME)
    for path in home.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    with sqlite_database(home), running(LiveStack(home, {"NIGHTSHIFT_TRAINER": str(TRAINER)})) as live:
        report("submission to the trainer's start", [start_wait(live) for _ in range(OFTEN)])
        report("cancel to freed device", [cancel_wait(live, "ok") for _ in range(OFTEN)])
        report("cancel to freed device, SIGTERM ignored", [cancel_wait(live, "ignore_sigterm") for _ in range(SELDOM)])
        report("kill -9 of a worker to running again", [kill_wait(live) for _ in range(SELDOM)])


def report(name: str, seconds: list[float]) -> None:
    """Print the median and what it comes from."""
    each = ", ".join(f"{value:.1f}" for value in sorted(seconds))
    print(f"{name}: {statistics.median(seconds):.1f} s (median of {each})", flush=True)


def start_wait(live) -> float:
    from jobs.models import Job
    from tests.e2e.live_stack import asked, wait_for_status

    begun = time.time()
    job = asked(steps=1)
    wait_for_status(job, Job.Status.COMPLETED, 60)
    return live.ledger(job)[0][2] - begun


def cancel_wait(live, fault: str) -> float:
    from jobs.models import Device
    from jobs.services.lifecycle import request_cancel
    from tests.e2e.live_stack import asked, wait_for, wait_for_step

    job = asked(fault, steps=5000)
    wait_for_step(live, job, 3)
    return _after(
        lambda: request_cancel(job, by=None), lambda: wait_for(lambda: not Device.objects.exclude(attempt=None), 60)
    )


def kill_wait(live) -> float:
    from jobs.models import Job
    from jobs.services.lifecycle import request_cancel
    from tests.e2e.live_stack import asked, wait_for, wait_for_status, wait_for_step

    job = asked(steps=5000)
    wait_for_step(live, job, 3)

    def runs_again() -> bool:
        live.worker.revive()  # as ``manage.py up`` does
        return live.counts(job)[0] == 2

    taken = _after(lambda: os.kill(live.worker.pid, signal.SIGKILL), lambda: wait_for(runs_again, 120))
    request_cancel(job, by=None)
    wait_for_status(job, Job.Status.CANCELLED, 60)
    return taken


def _after(cause: Callable[[], object], wait: Callable[[], object]) -> float:
    begun = time.monotonic()
    cause()
    wait()
    return time.monotonic() - begun


if __name__ == "__main__":
    sys.exit(main())
