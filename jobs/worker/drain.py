"""The flag that tells a worker to save and put its job back: a file, because it has to reach another process."""

import urllib.parse
from pathlib import Path

from django.conf import settings


def request_drain(worker_name: str) -> None:
    """Raise the flag."""
    path = _flag(worker_name)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.touch()


def clear_drain(worker_name: str) -> None:
    """Take the flag down."""
    _flag(worker_name).unlink(missing_ok=True)


def is_draining(worker_name: str) -> bool:
    """Tell whether the flag is up."""
    return _flag(worker_name).exists()


def _flag(worker_name: str) -> Path:
    return Path(settings.NIGHTSHIFT_HOME) / "drain" / urllib.parse.quote(worker_name, safe="@.-_")
