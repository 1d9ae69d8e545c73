"""What ends a run in a known way. Imports no torch."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager


class ConfigurationError(Exception):
    """What was asked cannot be run; the message is one line that says what to change."""


class Stopped(Exception):
    """A person or the worker asked the run to end, and its checkpoint is written."""


class Diverged(Exception):
    """A loss or a gradient is no finite number any more; the last checkpoint is from before it."""


class Parted(Exception):
    """Another process of the run is gone; why, it says itself if it can."""


@contextmanager
def as_configuration_error(what: str, advice: str = "") -> Iterator[None]:
    """Turn whatever a library makes of a damaged file into one line: ``what``, the reason in brackets, ``advice``."""
    try:
        yield
    except ConfigurationError:
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise
        raise ConfigurationError(f"{what} ({first_line(error)}){advice}") from None


def is_out_of_memory(error: Exception) -> bool:
    """Return whether a GPU's or the CPU's allocator refused."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"OutOfMemoryError", "MemoryError"}) or "DefaultCPUAllocator" in str(error)


def is_disk_full(error: BaseException | None) -> bool:
    """Return whether the disk had no room, also where a library says so in words or in the error it was handling."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        if os.strerror(errno.ENOSPC) in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def is_storage_fault(error: BaseException | None) -> bool:
    """Return whether a disk or a network file system failed under the error, whatever was asked of it."""
    if error is None or is_disk_full(error):
        return error is not None
    failed = isinstance(error, OSError) and error.errno in (errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.EREMOTEIO)
    return failed or is_storage_fault(error.__cause__ or error.__context__)


def first_line(error: Exception) -> str:
    """Return an error of a library as one line: its kind, and the first line it says."""
    return f"{type(error).__name__}: {error}".strip().splitlines()[0].rstrip(": ")
