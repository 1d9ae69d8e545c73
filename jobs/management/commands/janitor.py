"""``manage.py janitor``: look after leases and wake workers, until stopped. Several may run."""

import logging
import threading
import time
from typing import Any

from django.core.management.base import BaseCommand
from django.db import DatabaseError, InterfaceError, close_old_connections

from jobs.services.retention import apply_due
from jobs.services.sweep import Sweeper
from jobs.stack.signals import StopFlag
from jobs.worker.removal import keep_clear

TURN = 1.0  # seconds

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Reap expired leases, adopt finished results, wake idle workers and apply the retention rules."
    requires_system_checks: list[str] = []

    def handle(self, **_: Any) -> None:
        stopping = StopFlag()
        sweeper = Sweeper()
        never, daily = threading.Event().wait, {"first": apply_due}
        threading.Thread(target=keep_clear, args=(never,), kwargs=daily, name="removal", daemon=True).start()
        while not stopping():
            _turn(sweeper)
            time.sleep(TURN)


def _turn(sweeper: Sweeper) -> None:
    try:
        close_old_connections()
        sweeper.turn()
    except (DatabaseError, InterfaceError, OSError) as error:
        logger.warning("this round failed, leases are left alone for one lease: %s", error)
        sweeper.watch_anew()
    except Exception:  # a row that nobody thought of must not end the care for all others
        logger.exception("this round failed")
