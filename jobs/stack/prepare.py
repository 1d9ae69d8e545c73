"""What has to be there before the stack can serve: tables, static files, somebody who can log in."""

import hashlib
import os
import secrets
from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.db import DatabaseError, connection

ADMIN_NAME = "admin"


class NoDatabase(RuntimeError):
    """The database does not answer, or refuses the tables."""


def prepare_database() -> None:
    """Create or bring up to date the tables.

    Raises:
        NoDatabase: it cannot be used.
    """
    try:
        call_command("migrate", interactive=False, verbosity=0)
    except DatabaseError as error:
        name = connection.settings_dict["NAME"]
        raise NoDatabase(f"the database {name} cannot be used: {' '.join(str(error).split())}") from None


def collect_static() -> bool:
    """Collect the static files unless those collected are today's; tell whether anything was done."""
    stamp = Path(settings.STATIC_ROOT) / ".fingerprint"
    fingerprint = static_fingerprint()
    if stamp.exists() and stamp.read_text() == fingerprint:
        return False
    call_command("collectstatic", interactive=False, verbosity=0)
    stamp.write_text(fingerprint)
    return True


def static_fingerprint() -> str:
    """Return a digest of the name, size and time of every static file."""
    digest = hashlib.sha256()
    for finder in get_finders():
        for name, storage in finder.list(None):
            status = os.stat(storage.path(name))
            digest.update(f"{name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def ensure_admin() -> str | None:
    """Create the first admin account unless there is a superuser; return its password, which nothing keeps."""
    users = get_user_model().objects
    if users.filter(is_superuser=True).exists():
        return None
    password = secrets.token_urlsafe(12)
    users.create_superuser(ADMIN_NAME, password=password)
    return password
