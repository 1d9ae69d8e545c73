"""What every fault must leave: a queue that has drained. Its number and what was measured go into the fault table."""

import contextlib
import shutil
import sqlite3
import subprocess
import time

import pytest
from django.db import connection

from jobs.models import Job


@pytest.fixture
def live(live):
    yield live
    assert unfinished() == []


@pytest.fixture
def live_pair(live_pair):
    yield live_pair
    assert unfinished() == []


@pytest.fixture(autouse=True)
def _numbered(request, record_property):
    """Write the fault's number in ``facts/reliability.md`` to the report."""
    record_property("fault", request.node.get_closest_marker("fault").args[0])


@pytest.fixture
def happened(record_property):
    """Write what was measured to the report."""
    return lambda what: record_property("happened", what)


@pytest.fixture
def database_away(request, live):
    """Take the database away for the length of a ``with`` block, in the way of its kind."""

    @contextlib.contextmanager
    def away():
        if connection.vendor == "sqlite":
            lock = sqlite3.connect(live.home / "nightshift.sqlite3", isolation_level=None)
            lock.execute("BEGIN EXCLUSIVE")
            yield
            lock.execute("ROLLBACK")
            lock.close()
        else:
            server = request.getfixturevalue("postgres_server")
            server.kill()
            yield
            server.start()
            connection.close()

    return away


@pytest.fixture
def small_disk():
    """Mount disks of a size that a test can fill; only root may, and ``.ci/run`` is root."""
    with contextlib.ExitStack() as mounted:

        def mount(folder, size):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
            mounted.callback(shutil.rmtree, folder, ignore_errors=True)
            mounted.callback(subprocess.run, ["umount", "--lazy", folder], check=True)
            return folder

        yield mount


@contextlib.contextmanager
def full(folder, seconds):
    """Fill a disk to the last byte, and keep it full for the block and at least so long."""
    ballast, begun = folder / "ballast", time.monotonic()
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        for size in (65_536, 1):
            with contextlib.suppress(OSError):
                while file.write(b"\0" * size):
                    pass
    yield
    time.sleep(max(0.0, seconds - (time.monotonic() - begun)))
    ballast.unlink()


def unfinished():
    return [(str(job), job.status) for job in Job.objects.filter(status__in=Job.UNFINISHED)]
