"""Find the line of an output's end that says why: no progress bar, no warning, no table of a launcher."""

import re
from collections.abc import Iterator, Sequence

LONGEST = 400  # characters
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
RANK = re.compile(r"^\[(?:rank|default)?\d+\]:? ?")
TRACEBACK = "Traceback (most recent call last):"
EXCEPTION = re.compile(r"^(?:[a-z_]\w*\.)*_?[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Refused|Diverged)(?::|$)")
LAUNCHER = re.compile(r"ChildFailedError|SignalException|torch/distributed/(?:elastic|run|launcher)")
PROGRESS = re.compile(r"\d%\|.*\||(?:it/s|s/it)\]")
NOISE = re.compile(
    r"""^\$\s                                               # the command
    | ^[-=*_~+#.\s]*$                                       # rulers
    | ^\[.*(?:the\ log\ ends\ here|are\ missing\ here):     # what the worker writes into a log itself
    | \b[A-Z]\w*Warning:|\bWARNING\b|^\s*warnings\.warn\(
    | ^[WI]\d{4}\s|^\[[WI]\d{4}\s|\[W\d+[ ]                 # glog's warnings, torchrun's and C++'s
    | torch/distributed/|^(?:Root\ Cause|Failures:|<NO_OTHER_FAILURES>|<no\ other\ failures>)
    | ^\s*(?:time|host|rank|exitcode|error_file|traceback)\s*:\s  # torchrun's table
    | ^(?:CUDA\ kernel\ errors\ might|For\ debugging\ consider|Compile\ with\ `TORCH_USE|Search\ for\ `cudaError)
    | leaked\ (?:semaphore|shared_memory)|^Exception\ ignored\ in
    """,
    re.VERBOSE | re.IGNORECASE,
)


def last_meaningful_line(output: str) -> str:
    """Return the line of ``output`` that says most about its end, "" where none says anything.

    The last of the trainer's own ``error:`` lines and the tracebacks' exceptions, else the last line that is no noise.
    """
    lines = list(readable_lines(output))
    plain = [line.strip() for line in lines if not NOISE.search(line)] or [line.strip() for line in lines]
    found = list(reasons(lines)) or [line for line in plain if not line.startswith("$ ")]
    return found[-1][:LONGEST] if found else ""


def readable_lines(output: str) -> Iterator[str]:
    """Yield the lines as a terminal would show them at last, without colours, progress bars and the names of ranks."""
    for raw in ANSI.sub("", output).replace("\0", "").split("\n"):
        if TRACEBACK in raw:  # a bar that was not ended stands before it
            yield TRACEBACK
            continue
        shown = [part for part in raw.split("\r") if part.strip()]
        line = RANK.sub("", shown[-1]).rstrip() if shown else ""
        if line and not PROGRESS.search(line):
            yield line


def reasons(lines: Sequence[str]) -> Iterator[str]:
    """Yield each ``error:`` line and each traceback's exception, in order."""
    whole = TRACEBACK not in lines  # else an exception without one has lost it: it began before what was kept
    for index, line in enumerate(lines):
        rest = lines[index + 1 :]
        if line.startswith("error: ") or (whole and EXCEPTION.match(line)):
            yield _joined(line, rest)
        elif line == TRACEBACK and not (index and lines[index - 1].startswith("Exception ignored")):
            below = next((place for place, text in enumerate(rest) if not text[0].isspace()), None)
            if below is not None and not LAUNCHER.search(rest[below]):
                yield _joined(rest[below], rest[below + 1 :])


def _joined(line: str, rest: Sequence[str]) -> str:
    """Return an exception's first line, with the second where the first only announces it."""
    return f"{line} {rest[0].strip()}" if line.endswith(":") and rest else line
