"""The database of a test: a migrated SQLite file or PostgreSQL database, in this process and in what it starts."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import environ
from django.core.management import call_command
from django.db import connections
from django.db.utils import load_backend

from tests.e2e.postgres_server import NAME, PRISTINE, PostgresServer

FILE = "nightshift.sqlite3"
_migrated: dict[str, bytes] = {}


@contextlib.contextmanager
def sqlite_database(home: Path) -> Iterator[None]:
    """Use a new SQLite file where the program itself would make it."""
    (home / FILE).write_bytes(_pristine_file(home))
    with _connected(None, home):
        yield


@contextlib.contextmanager
def postgres_database(server: PostgresServer, home: Path) -> Iterator[None]:
    """Use a new database of the server."""
    if server.pristine_url not in _migrated:
        server.create(PRISTINE)
        with _connected(server.pristine_url, home):
            call_command("migrate", verbosity=0)
        _migrated[server.pristine_url] = b""
    server.create(NAME, template=PRISTINE)
    with _connected(server.url, home):
        yield


@contextlib.contextmanager
def url_database(url: str, home: Path) -> Iterator[None]:
    """Use the database that ``url`` names; migrate it."""
    with _connected(url, home):
        call_command("migrate", verbosity=0)
        yield


def _pristine_file(home: Path) -> bytes:
    """Return a migrated file, made once: migrating takes a second that every test would wait."""
    if "sqlite" not in _migrated:
        with _connected(None, home):
            call_command("migrate", verbosity=0)
        _migrated["sqlite"] = (home / FILE).read_bytes()
    return _migrated["sqlite"]


@contextlib.contextmanager
def _connected(url: str | None, home: Path) -> Iterator[None]:
    usual, usual_url = connections["default"], os.environ.pop("DATABASE_URL", None)
    options = usual.settings_dict
    if url:
        os.environ["DATABASE_URL"] = url
        named = environ.Env.db_url_config(url)
        kept = options["OPTIONS"] if named["ENGINE"].endswith("sqlite3") else {}
        options = options | {"OPTIONS": kept} | named
    else:
        options = options | {"NAME": str(home / FILE)}
    connections["default"] = load_backend(options["ENGINE"]).DatabaseWrapper(options, "default")
    try:
        yield
    finally:
        connections["default"].close()
        connections["default"] = usual
        os.environ.pop("DATABASE_URL", None)
        if usual_url:
            os.environ["DATABASE_URL"] = usual_url
