"""Which code trains. Imports no torch."""

import os
import subprocess

from trainers.paths import REPOSITORY


def code_revision() -> str | None:
    """Return the checkout's commit, marked when it has changes, or what the image's builder said; else nothing."""
    if built := os.environ.get("NIGHTSHIFT_REVISION"):
        return built[:64]
    command = ["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()[:64] or None
