"""``manage.py up``: the whole stack on this machine, until Ctrl-C."""

import os
import time
from argparse import ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs.stack.broker import NoBroker
from jobs.stack.devices import WrongDevices
from jobs.stack.launch import NotStarted, Stack
from jobs.stack.lock import AlreadyRunning, PortTaken
from jobs.stack.prepare import NoDatabase
from jobs.stack.signals import StopFlag

DEFAULT_PORT = 8000


class Command(BaseCommand):
    help = "Start broker, web, janitor and one worker per device; Ctrl-C stops them and puts running jobs back."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        add_port_argument(parser)

    def handle(self, *, port: int, **_: Any) -> None:
        stopping = StopFlag()
        try:
            with Stack(port, say=self.say, stopping=stopping) as stack:
                if not stopping():
                    self.say("Ctrl-C stops it.")
                while not stopping():
                    stack.tend()
                    time.sleep(0.2)
        except (AlreadyRunning, PortTaken, NoBroker, NoDatabase, NotStarted, WrongDevices) as error:
            raise CommandError(str(error)) from None
        self.say("Stopped.")

    def say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def add_port_argument(parser: CommandParser) -> None:
    """Add ``--port``, whose default an operator can set."""
    default = os.environ.get("NIGHTSHIFT_PORT") or str(DEFAULT_PORT)
    parser.add_argument("--port", type=_port, default=default, help="where the admin listens (default: %(default)s)")


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= 65535):
        raise ArgumentTypeError(f"{text} is no port; give 1 to 65535, here or in NIGHTSHIFT_PORT")
    return int(text)
