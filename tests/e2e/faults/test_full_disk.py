"""A disk fills up to its last byte under the database, under the run folders, or under the broker."""

import os
import tempfile
from pathlib import Path

import pytest
import redis
from django.db import DatabaseError, connection

from jobs.models import Job, LogChunk
from jobs.stack.broker import socket_path
from tests.e2e.conftest import SECONDS, TRAINER
from tests.e2e.databases import postgres_database, url_database
from tests.e2e.faults.conftest import full, unfinished
from tests.e2e.live_stack import LiveStack, asked, running, wait_for, wait_for_status, wait_for_step
from tests.e2e.postgres_server import PostgresServer

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.fault(13),
    pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk, which only root may"),
]
FULL = 9  # seconds; a lease is 6


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def small_database(request, home, small_disk, django_db_blocker):
    """A database on a disk of its own: the disk, and what starts its server again where it has one."""
    disk = small_disk(
        Path(tempfile.mkdtemp(prefix="nightshift-disk-")), "200m" if request.param == "postgres" else "8m"
    )
    with django_db_blocker.unblock():
        if request.param == "sqlite":
            with url_database(f"sqlite:///{disk}/nightshift.sqlite3", home):
                yield disk, lambda: None
        else:
            (disk / "server").mkdir()
            with PostgresServer(disk / "server") as server, postgres_database(server, home):
                yield disk, server.start


def test_a_job_ends_while_the_database_has_no_room_and_is_recorded_afterwards(
    home, small_database, short_lease, happened
):
    disk, start_again = small_database
    with running(LiveStack(home, SECONDS | {"NIGHTSHIFT_TRAINER": str(TRAINER)})) as live:
        job = asked("chatty", steps=40)
        wait_for_step(live, job, 3)
        with full(disk, FULL):
            with pytest.raises(DatabaseError):
                LogChunk.objects.create(job=job, offset=10**9, length=1, data=os.urandom(20_000_000))
            connection.close()
        start_again()
        recorded_after = wait_for_status(job, Job.Status.COMPLETED, 40)
        assert (live.counts(job), job.attempts.count(), unfinished()) == ((1, 1), 1, [])
    happened(f"database: full for {FULL} s over the job's end, done {recorded_after:.1f} s later, attempt 1")


def test_a_full_disk_under_the_run_folders_costs_lines_of_the_log_and_no_job(
    database, short_lease, small_disk, happened
):
    disk = small_disk(database / "runs", "1m")
    with running(LiveStack(database, SECONDS | {"NIGHTSHIFT_TRAINER": str(TRAINER)})) as live:
        job = asked("chatty", steps=50)
        wait_for_step(live, job, 3)
        with full(disk, 3):
            pass
        wait_for_status(job, Job.Status.COMPLETED)
        assert (live.counts(job), job.attempts.get().exit_code, unfinished()) == ((1, 1), 0, [])
        assert b"bytes are missing here: the disk was full]" in (disk / str(job.pk) / "log.txt").read_bytes()
    happened("log: the trainer ended with 0, the log says how many bytes are missing")


def test_a_full_disk_under_the_broker_ends_no_worker(database, short_lease, small_disk, happened):
    disk = small_disk(database / "broker", "1m")
    with running(LiveStack(database, SECONDS | {"NIGHTSHIFT_TRAINER": str(TRAINER)})) as live:
        job, worker = asked(steps=30), live.worker.pid
        wait_for_step(live, job, 3)
        with full(disk, FULL):
            wait_for(lambda: refuses_to_write(live), 10)
            wait_for_status(job, Job.Status.COMPLETED)
            following = asked(steps=1)
        done_after = wait_for_status(following, Job.Status.COMPLETED, 40)
        assert (live.worker.pid, live.worker.is_running, unfinished()) == (worker, True, [])
        assert live.counts(job) == live.counts(following) == (1, 1)
    happened(f"broker: the worker lives, both jobs ran once, the second {done_after:.0f} s after there was room")


def refuses_to_write(live):
    try:
        redis.Redis(unix_socket_path=str(socket_path(live.home))).set("probe", "x" * 1000)
    except redis.ResponseError as error:
        return "MISCONF" in str(error)
    return False
