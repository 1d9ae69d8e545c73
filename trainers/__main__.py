"""``python -m trainers <type> --flag value ...``: parse first, import torch second."""

import os
import sys
from contextlib import redirect_stderr

from trainers import processes
from trainers.cli import parse_or_exit

if __name__ == "__main__":
    argv = sys.argv[1:]
    with open(os.devnull, "w") as nowhere, redirect_stderr(sys.stderr if processes.is_main() else nowhere):
        command = parse_or_exit(argv)  # several processes find the same fault; one says it
    if (count := command.options.processes) > 1 and processes.world_size() == 1:
        from trainers.launch import end_as, run_processes

        raise SystemExit(end_as(run_processes(argv, count)))
    from trainers.attempt import run_attempt

    raise SystemExit(run_attempt(command))
