"""``manage.py gpu_workers``: one worker per device of this host, kept running until stopped."""

import time
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from jobs.stack.devices import WrongDevices
from jobs.stack.launch import worker_programs
from jobs.stack.processes import Child, stop_together
from jobs.stack.signals import StopFlag


class Command(BaseCommand):
    help = "Start one worker per GPU of this host, or one for the CPU; start again what dies; stop on Ctrl-C."
    requires_system_checks: list[str] = []

    def handle(self, **_: Any) -> None:
        stopping = StopFlag()
        try:
            programs = worker_programs()
        except WrongDevices as error:
            raise CommandError(str(error)) from None
        workers = [Child(program, settings.NIGHTSHIFT_HOME / "logs") for program in programs]
        for worker in workers:
            worker.start()
        self.stdout.write(f"Started {len(workers)} worker(s); logs in {settings.NIGHTSHIFT_HOME / 'logs'}.")
        while not stopping():
            for worker in workers:
                if news := worker.revive():
                    self.stdout.write(news)
            time.sleep(0.2)
        stop_together(workers)
