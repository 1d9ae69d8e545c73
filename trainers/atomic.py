"""Write a file that is never seen half written. Imports no torch."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(target: Path, *, shared: bool = False) -> Iterator[Path]:
    """Give a path to write to; it takes ``target``'s place, on the disk for good, once the block is done.

    A block that fails leaves ``target`` as it was and nothing beside it, so that a full disk gets its space back.

    Args:
        shared: Other processes may write ``target`` at the same time. Otherwise what a kill left is written over.
    """
    temporary = target.with_name(f".{target.name}{f'.{os.getpid()}' if shared else ''}.tmp")
    try:
        yield temporary
        _flush(temporary, os.O_RDWR)
        os.replace(temporary, target)
        _flush(target.parent, os.O_RDONLY)
    finally:
        temporary.unlink(missing_ok=True)


def _flush(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
