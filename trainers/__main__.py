"""``python -m trainers <type> --flag value ...``: parse first, import torch second."""

import sys

from trainers.cli import parse_or_exit

if __name__ == "__main__":
    command = parse_or_exit(sys.argv[1:])
    from trainers.attempt import run_attempt

    raise SystemExit(run_attempt(command))
