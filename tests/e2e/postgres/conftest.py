"""A PostgreSQL server of the tests' own: a fresh cluster in a temporary folder, reached only through its socket."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

INSTALL = "PostgreSQL's programs are missing; on Debian: apt-get install postgresql"


def programs_folder() -> Path:
    """Return the folder of ``initdb`` and ``postgres``, newest version first."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    on_path = [Path(found).resolve().parent for found in [shutil.which("postgres")] if found]
    for folder in (*debian, *on_path):
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    pytest.fail(INSTALL)


def as_owner(*command: str | Path) -> list[str]:
    """Return the command as the user that owns the cluster: ``initdb`` refuses to be run by root."""
    drop = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"] if os.getuid() == 0 else []
    return [*drop, *(str(word) for word in command)]


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """Return the DATABASE_URL of an empty database."""
    programs = programs_folder()
    folder = Path(tempfile.mkdtemp(prefix="nightshift-pg-"))
    if os.getuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    data = folder / "data"
    run = {"check": True, "cwd": folder, "stdout": subprocess.DEVNULL}
    subprocess.run(as_owner(programs / "initdb", "-D", data, "-U", "postgres", "--auth=trust", "--no-sync"), **run)
    options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
    control = [programs / "pg_ctl", "-D", data, "-w", "-l", folder / "log"]
    subprocess.run(as_owner(*control, "-o", options, "start"), **run)
    try:
        subprocess.run(as_owner(programs / "createdb", "-h", folder, "-U", "postgres", "nightshift"), **run)
        yield f"postgres://postgres@/nightshift?host={folder}"
    finally:
        subprocess.run(as_owner(*control, "-m", "immediate", "stop"), **run)
        shutil.rmtree(folder)
