"""Which code a job was submitted with."""

import functools
import os
import subprocess

from trainers.paths import REPOSITORY


@functools.cache
def code_revision() -> str:
    """Return the checkout's commit, marked when it has changes, or what the image's builder said, or nothing."""
    if built := os.environ.get("NIGHTSHIFT_REVISION"):
        return built[:64]
    command = ["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()[:64]
