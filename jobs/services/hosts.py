"""What the database knows of a machine that runs workers."""

import contextlib
import os
import uuid
from pathlib import Path
from tempfile import NamedTemporaryFile

from django.conf import settings
from django.utils import timezone

from jobs.models import Host

HOME_ID = "home-id"


def home_id() -> str:
    """Return the identity of this state folder, made when first asked for: hosts that share it have one."""
    path = Path(settings.NIGHTSHIFT_HOME) / HOME_ID
    if not path.exists():
        with NamedTemporaryFile("w", dir=path.parent, prefix=f".{HOME_ID}-") as file:
            file.write(str(uuid.uuid4()))
            file.flush()
            with contextlib.suppress(FileExistsError):  # of several workers that start at once one is first
                os.link(file.name, path)
    return path.read_text().strip()


def touch_host(name: str) -> None:
    """Say that the host lives, and which state folder it works on."""
    Host.objects.update_or_create(name=name, defaults={"home": home_id(), "seen_at": timezone.now()})
