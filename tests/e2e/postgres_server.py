"""A PostgreSQL server of the tests' own: a fresh cluster in a folder, reached only through its socket."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

INSTALL = "PostgreSQL's programs are missing; on Debian: apt-get install postgresql"
NAME, PRISTINE = "nightshift", "pristine"  # databases: the tests', and what it is copied from
START = 20.0  # seconds
SMALL = ("--wal-segsize=1", "--no-sync")


class PostgresServer:
    """A server that a test may kill and start again."""

    def __init__(self, folder: Path | None = None) -> None:
        """Make a cluster in ``folder``, an empty one; by default in a temporary folder."""
        self._programs = programs_folder()
        self.folder = folder or Path(tempfile.mkdtemp(prefix="nightshift-pg-"))
        self.process: subprocess.Popen[bytes] | None = None
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
        self._run("initdb", "-D", self.folder / "data", "-U", "postgres", "--auth=trust", *SMALL)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)  # at once: nobody will miss the data
            self.process.wait()
        shutil.rmtree(self.folder)

    @property
    def url(self) -> str:
        """The DATABASE_URL of the tests' database."""
        return f"postgres://postgres@/{NAME}?host={self.folder}"

    @property
    def pristine_url(self) -> str:
        """The DATABASE_URL of the database that others are copied from."""
        return f"postgres://postgres@/{PRISTINE}?host={self.folder}"

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """Start the server, as often as it takes: for a while the orphans of a killed one are in its way."""
        deadline = time.monotonic() + START
        while not self._answers():
            if not self.is_running:
                self._launch()
            assert time.monotonic() < deadline, (self.folder / "log").read_text()[-2000:]
            time.sleep(0.1)

    def kill(self) -> None:
        """End the postmaster by SIGKILL, as a crash of the machine's would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def create(self, name: str, template: str = "template0") -> None:
        """Create a database anew."""
        for statement in (
            f"DROP DATABASE IF EXISTS {name} WITH (FORCE)",
            f"CREATE DATABASE {name} TEMPLATE {template}",
        ):
            self._run("psql", "-h", self.folder, "-U", "postgres", "-qc", statement, "postgres")

    def _launch(self) -> None:
        options = {
            "listen_addresses": "",
            "unix_socket_directories": self.folder,
            "fsync": "off",
            "max_wal_size": "8MB",
        }
        flags = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            command = as_owner(self._programs / "postgres", "-D", self.folder / "data", *flags)
            self.process = subprocess.Popen(
                command,
                cwd=self.folder,
                env={"PATH": os.environ["PATH"]},  # a state folder's name in it would make it a part of the stack
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _answers(self) -> bool:
        ready = [self._programs / "pg_isready", "-q", "-h", str(self.folder)]
        return self.is_running and subprocess.run(ready).returncode == 0

    def _run(self, program: str, *arguments: object) -> None:
        command = as_owner(self._programs / program, *arguments)
        subprocess.run(command, check=True, cwd=self.folder, stdout=subprocess.DEVNULL)


def programs_folder() -> Path:
    """Return the folder of ``initdb`` and ``postgres``, newest version first."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    on_path = [Path(found).resolve().parent for found in [shutil.which("postgres")] if found]
    for folder in (*debian, *on_path):
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise RuntimeError(INSTALL)


def as_owner(*command: object) -> list[str]:
    """Return the command as the user that owns the cluster: ``initdb`` refuses to be run by root."""
    drop = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"] if os.getuid() == 0 else []
    return [*drop, *(str(word) for word in command)]
