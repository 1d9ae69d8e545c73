"""The real stack as fixtures: on SQLite and, marked ``postgres``, on a PostgreSQL server of the tests' own."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings as django_settings

from tests.e2e.databases import postgres_database, sqlite_database
from tests.e2e.live_stack import SECONDS, TRAINER, LiveStack, pretended_gpus, running, wait_for, wait_for_status
from tests.e2e.postgres_server import PostgresServer

__all__ = ["SECONDS", "TRAINER", "LiveStack", "wait_for", "wait_for_status"]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A running server for all tests of a session."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def home() -> Path:
    """The state folder, emptied."""
    home = Path(django_settings.NIGHTSHIFT_HOME)
    for path in home.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return home


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database(request, home, django_db_blocker):
    """The state folder with a new database, which is this process's as well."""
    with django_db_blocker.unblock():
        if request.param == "sqlite":
            with sqlite_database(home):
                yield home
        else:
            server = request.getfixturevalue("postgres_server")
            server.start()  # a test may have killed it
            with postgres_database(server, home):
                yield home


@pytest.fixture
def short_lease(settings):
    """The times of ``SECONDS`` in this process, too."""
    settings.NIGHTSHIFT_LEASE = float(SECONDS["NIGHTSHIFT_LEASE"])


@pytest.fixture
def live(database, short_lease):
    """A stack with short leases that runs the stand-in trainer."""
    with running(LiveStack(database, SECONDS | {"NIGHTSHIFT_TRAINER": str(TRAINER)})) as stack:
        yield stack


@pytest.fixture
def live_pair(database, short_lease):
    """The same with two workers, each on a pretended GPU."""
    stack = LiveStack(database, SECONDS | {"NIGHTSHIFT_TRAINER": str(TRAINER)}, pretended_gpus(2))
    with running(stack):
        yield stack


@pytest.fixture
def live_training(home, django_db_blocker):
    """A stack that runs the real trainers, on SQLite."""
    with (
        django_db_blocker.unblock(),
        sqlite_database(home),
        running(LiveStack(home, {"OMP_NUM_THREADS": "1"})) as stack,
    ):
        yield stack
