"""Try until the web is back: a restart of it costs a finished training nothing."""

import time
from collections.abc import Callable
from typing import TypeVar

from django.conf import settings

from jobs.storage import WebAway

PAUSE = 1.0  # seconds; doubled up to
LONGEST_PAUSE = 30.0
LOOK = 0.2  # seconds between two looks at whether to stop

Result = TypeVar("Result")


class GaveUp(Exception):
    """Something else had to be done first, or the web was away for too long."""


def keep_trying(action: Callable[[], Result], stopped: Callable[[], bool], note: Callable[[str], None]) -> Result:
    """Return what ``action`` does once the web answers. ``note`` tells people, once, that it does not.

    Raises:
        GaveUp: ``stopped`` said so, or ``NIGHTSHIFT_WEB_PATIENCE`` is over.
    """
    deadline, pause = time.monotonic() + settings.NIGHTSHIFT_WEB_PATIENCE, PAUSE
    while True:
        try:
            return action()
        except WebAway as error:
            if time.monotonic() >= deadline:
                raise GaveUp(str(error)) from None
            if pause == PAUSE:
                note(f"{error}; trying again for {settings.NIGHTSHIFT_WEB_PATIENCE / 60:.0f} minutes")
            _wait(pause, stopped, str(error))
            pause = min(2 * pause, LONGEST_PAUSE)


def _wait(seconds: float, stopped: Callable[[], bool], reason: str) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if stopped():
            raise GaveUp(reason)
        time.sleep(LOOK)
