"""Write ``.env`` with a fresh secret key, for the owner's eyes only. ``python -m webadmin.env_file``"""

import os
import secrets
from pathlib import Path

ENV_FILE = Path(__file__).resolve().parent.parent / ".env"


def ensure_env_file(path: Path = ENV_FILE) -> bool:
    """Create ``path`` with mode 0600 and a random secret key unless it exists; tell whether it was created."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    with os.fdopen(handle, "w") as file:
        file.write("# Written once; .env.example names everything that can stand here.\n")
        file.write(f"SECRET_KEY={secrets.token_urlsafe(50)}\n")
    return True


if __name__ == "__main__":
    ensure_env_file()
