"""One stack per state folder and one server per port; whoever comes second learns who was first."""

import fcntl
import json
import os
import socket
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil


class AlreadyRunning(RuntimeError):
    """Another stack serves this state folder."""


class PortTaken(RuntimeError):
    """Another process listens on the port."""


class StackLock:
    """The lock of a state folder. The kernel lets go of it when its holder dies, so a stale file hinders nobody."""

    def __init__(self, home: Path, address: str) -> None:
        self.path = home / "stack.lock"
        self.address = address

    def __enter__(self) -> Self:
        """Take the lock and write down who holds it.

        Raises:
            AlreadyRunning: a living process holds it.
        """
        self._file = self.path.open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise AlreadyRunning(_describe(self.path)) from None
        self._file.truncate(0)
        self._file.write(json.dumps({"pid": os.getpid(), "address": self.address}))
        self._file.flush()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._file.truncate(0)
        self._file.close()


def running_address(home: Path) -> str | None:
    """Return the address of the stack that serves ``home``, or None when none does."""
    path = home / "stack.lock"
    if not path.exists():
        return None
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return str(_holder(path).get("address", "an unknown address"))
    return None


def require_free_port(host: str, port: int) -> None:
    """Check that a server can listen on ``host:port``.

    Raises:
        PortTaken: something listens there already; the message names it.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise PortTaken(
                f"http://{host}:{port} is taken by {_listener(port)} ({error.strerror}); "
                "stop it or choose another port with NIGHTSHIFT_PORT"
            ) from None


def _holder(path: Path) -> dict[str, object]:
    try:
        holder = json.loads(path.read_text())
    except ValueError:
        return {}
    return holder if isinstance(holder, dict) else {}


def _describe(path: Path) -> str:
    holder = _holder(path)
    return f"Nightshift is already running: pid {holder.get('pid', 'unknown')}, {holder.get('address', 'starting')}"


def _listener(port: int) -> str:
    try:
        for connection in psutil.net_connections("tcp"):
            listens = connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,)
            if listens and connection.pid:
                return f"pid {connection.pid} ({psutil.Process(connection.pid).name()})"
    except psutil.Error:
        pass
    return "another process"
