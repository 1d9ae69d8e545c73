"""What ends a run in a known way. Imports no torch."""

from collections.abc import Iterator
from contextlib import contextmanager


class ConfigurationError(Exception):
    """What was asked cannot be run; the message is one line that says what to change."""


class Stopped(Exception):
    """A person or the worker asked the run to end, and its checkpoint is written."""


class Diverged(Exception):
    """A loss or a gradient is no finite number any more; the last checkpoint is from before it."""


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


def first_line(error: Exception) -> str:
    """Return an error of a library as one line: its kind, and the first line it says."""
    return f"{type(error).__name__}: {error}".strip().splitlines()[0].rstrip(": ")
