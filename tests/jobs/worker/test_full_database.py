"""SQLite on a disk without room: what cannot be written now is written later, and the training goes on."""

import os

import pytest
from django.db import OperationalError, connection

from jobs.models import Job, LogChunk
from jobs.services.claim import claim_next
from jobs.worker import link as link_module
from jobs.worker.link import Link, persist
from jobs.worker.ship import Shipper
from jobs.worker.time_limit import TimeLimit
from tests.jobs.rows import queued, worker

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL's disk is filled in tests/e2e/faults"),
]
MUCH = os.urandom(400_000)


def allow_pages(count):
    """Let the database file have so many pages, or as many as it has now if that is more."""
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA max_page_count = {count}")


@pytest.fixture
def full_database(db):
    with connection.cursor() as cursor:
        cursor.execute("VACUUM")
    allow_pages(1)
    yield
    allow_pages(2**30)


def keep(job):
    return LogChunk.objects.create(job=job, offset=0, length=len(MUCH), data=MUCH)


def test_persist_tries_again_until_the_database_has_room(full_database, monkeypatch):
    job, refused = queued(), []
    monkeypatch.setattr(link_module, "RETRY", 0)

    def write():
        try:
            keep(job)
        except OperationalError as error:
            refused.append(str(error))
            allow_pages(2**30 if len(refused) == 3 else 1)
            raise

    persist(write)
    assert refused == ["database or disk is full"] * 3
    assert LogChunk.objects.get().length == len(MUCH)


def test_the_link_neither_ends_nor_gives_up_what_it_could_not_write(full_database, tmp_path, monkeypatch):
    monkeypatch.setattr(link_module, "WRITE", 0)
    queued()
    attempt = claim_next(worker())
    (tmp_path / "log.txt").write_bytes(MUCH[:200_000])
    shipper = Shipper(attempt, tmp_path)
    link = Link(attempt, shipper, TimeLimit(attempt))
    link._turn()
    assert (LogChunk.objects.count(), link.fenced.is_set(), shipper.has_news()) == (0, False, True)
    allow_pages(2**30)
    link._turn()
    assert LogChunk.objects.get().length == 200_000
    assert Job.objects.get().status == Job.Status.RUNNING
