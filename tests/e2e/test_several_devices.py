"""Jobs of several devices, on pretended ones: four GPUs of one host and two of another, all of this machine."""

import json
from pathlib import Path

import psutil
import pytest

from jobs.models import Attempt, Device, Job
from jobs.services.reasons import waiting_reasons
from jobs.stack.devices import configured_devices
from tests.e2e.databases import sqlite_database
from tests.e2e.live_stack import (
    SECONDS,
    TRAINER,
    LiveStack,
    asked,
    gone,
    kill_tree,
    running,
    wait_for,
    wait_for_status,
    wait_for_step,
)
from tests.e2e.test_training import SFT
from tests.jobs.rows import queued

pytestmark = pytest.mark.e2e


def listed(host, count, **more):
    """Return devices as an operator lists them in NIGHTSHIFT_DEVICES."""
    names = [
        {"key": f"GPU-{host}{n}", "kind": "gpu", "host": host, "name": "Pretended", "index": n} for n in range(count)
    ]
    return configured_devices(json.dumps([name | more for name in names]))


@pytest.fixture
def stand_in(database, short_lease):
    """Start a stack on so many devices that runs the stand-in trainer."""
    environment = SECONDS | {"NIGHTSHIFT_TRAINER": str(TRAINER), "NIGHTSHIFT_GANG_PATIENCE": "2"}
    return lambda devices: running(LiveStack(database, environment, devices))


def given(live, job):
    """Return the devices that the job's last trainer saw."""
    return next(entry.devices for entry in reversed(live.entries()) if entry.job == job.pk)


def trainers_of(job):
    """Return the environment of each ``python -m trainers`` of a job that a launcher started."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if "trainers" in words and f"runs/{job.pk}" in words:
            environment = Path(f"/proc/{process.pid}/environ").read_bytes().decode().split("\0")
            found.append(dict(entry.partition("=")[::2] for entry in environment if "=" in entry))
    return [environment for environment in found if "RANK" in environment]


@pytest.fixture
def three_devices(home, django_db_blocker):
    """A stack on three devices that runs the real trainers, on SQLite."""
    stack = LiveStack(home, {"OMP_NUM_THREADS": "1"}, listed("box", 3))
    with django_db_blocker.unblock(), sqlite_database(home), running(stack):
        yield


@pytest.mark.usefixtures("three_devices")
def test_a_real_training_of_two_processes_gets_exactly_its_two_devices():
    job = queued("sft", params=SFT | {"max_steps": 30}, device_count=2, device_request="gpu")
    wait_for(lambda: Device.objects.filter(attempt__job=job).count() == 2, 20)
    keys = set(Device.objects.filter(attempt__job=job).values_list("key", flat=True))
    wait_for(lambda: len(trainers_of(job)) == 2, 30)
    ranks = {environment["RANK"]: environment for environment in trainers_of(job)}
    assert set(ranks) == {"0", "1"}
    for environment in ranks.values():
        assert set(environment["CUDA_VISIBLE_DEVICES"].split(",")) == keys
        assert environment["WORLD_SIZE"] == "2"
    beside = queued("sft", params=SFT | {"data_path": "../dataset/absent.jsonl"})
    wait_for_status(beside, Job.Status.FAILED, 30)
    assert beside.attempts.get().device.key not in keys
    job.refresh_from_db()
    assert (job.status, Job.objects.filter(status=Job.Status.RUNNING).count()) == (Job.Status.RUNNING, 1)
    wait_for_status(job, Job.Status.COMPLETED, 90)
    assert list(job.metrics.values_list("step", flat=True))[-1] == 30
    assert set(job.attempts.get().devices.values_list("key", flat=True)) == keys
    assert not Device.objects.exclude(attempt=None).exists()


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)  # the database makes no difference to it
def test_all_devices_of_a_job_are_of_one_host_and_bear_the_label_it_asks_for(stand_in):
    big, fast = listed("box", 4, memory_bytes=80 * 2**30), listed("fast", 2, labels="quick new")
    with stand_in([*big, *fast]) as live:
        four = asked(device_count=4, steps=10)
        labelled = asked(device_count=2, device_request="label", device_label="quick", steps=10)
        by_memory = asked(device_request="label", device_label="80g", steps=1)
        five = asked(device_count=5, steps=1)
        for job in (four, labelled, by_memory):
            wait_for_status(job, Job.Status.COMPLETED, 30)
        assert sorted(given(live, four)) == [device.key for device in big]
        assert sorted(given(live, labelled)) == [device.key for device in fast]
        assert given(live, by_memory)[0] in {device.key for device in big}
        assert four.attempts.get().device_count == 4
        five.refresh_from_db()
        assert (five.status, "5" in waiting_reasons([five])[five.pk]) == (Job.Status.QUEUED, True)


def test_the_slots_of_a_job_come_free_after_its_leading_worker_was_killed_and_the_others_go_on_with_it(stand_in):
    with stand_in(listed("box", 3)) as live:
        job = asked("saver", device_count=2, steps=40)
        wait_for_step(live, job, 12)
        leader = job.attempts.get().device
        pid = live.trainer(job).pid
        kill_tree(live.workers[leader.index])
        assert wait_for(lambda: gone(pid), 5) < 3
        wait_for_status(job, Job.Status.COMPLETED, 40)
        assert [attempt.outcome for attempt in job.attempts.all()] == [Attempt.Outcome.LOST, Attempt.Outcome.COMPLETED]
        assert sorted(given(live, job)) == [f"GPU-box{n}" for n in range(3) if n != leader.index]
        assert list(job.metrics.values_list("step", flat=True)) == list(range(1, 41))


def test_a_job_of_two_devices_is_not_starved_by_a_stream_of_small_ones(stand_in):
    with stand_in(listed("box", 2)) as live:
        for steps in (10, 16):  # the two devices never come free together
            asked(steps=steps)
        pair = asked(device_count=2, steps=3)
        small = [asked(steps=12) for _ in range(6)]
        wait_for_status(pair, Job.Status.COMPLETED, 40)
        began = live.ledger(pair)[0][2]
        started = [live.ledger(job)[0][2] for job in small if live.ledger(job)]
        before = [at for at in started if at < began]
        print(f"{len(before)} of {len(small)} small jobs started before the one of two devices")
        assert 1 <= len(before) <= 4
        for job in small:
            wait_for_status(job, Job.Status.COMPLETED, 40)
