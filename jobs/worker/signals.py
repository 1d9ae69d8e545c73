"""The signals that end a trainer, by name and by what they mean."""

import signal

MEANINGS = {
    "SIGABRT": "a library gave up: an assertion in native code, or NCCL",
    "SIGBUS": "memory behind a file or /dev/shm was gone",
    "SIGFPE": "an arithmetic fault in native code",
    "SIGHUP": "its terminal or session ended",
    "SIGILL": "an instruction that this CPU does not know",
    "SIGINT": "interrupted from outside",
    "SIGKILL": "killed from outside; no sign of the kernel's memory killer",
    "SIGSEGV": "a crash in native code",
    "SIGTERM": "asked from outside to end, and did so without saving",
    "SIGXCPU": "the limit of CPU time of this account",
    "SIGXFSZ": "the limit of file size of this account",
}


def signal_name(number: int) -> str:
    """Return a signal's name, or its number where it has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def described(number: int) -> str:
    """Return a signal's name with what it means in brackets, where that is known."""
    name = signal_name(number)
    return f"{name} ({MEANINGS[name]})" if name in MEANINGS else name
