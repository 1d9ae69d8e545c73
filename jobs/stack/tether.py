"""Run a program that dies with the process that started it: ``python tether.py <parent pid> <program> [argument ...]``.

The kernel's parent-death signal is set here, in a fresh process with one thread, and survives the exec. Where the
kernel has none (macOS) the program simply runs.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, argv: list[str]) -> None:
    """Tie this process to ``parent`` and become ``argv``."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the line above
            sys.exit(1)
    os.execvp(argv[0], argv)  # noqa: S606  # an argument list, no shell


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
