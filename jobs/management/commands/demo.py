"""``manage.py demo``: two jobs that learn, from submission to result, on this machine."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs.management.commands.up import add_port_argument
from jobs.models import Job
from jobs.services.lifecycle import NotPossible, request_cancel
from jobs.stack.broker import NoBroker
from jobs.stack.demo_batch import REQUIRED_GAIN, gain, submit_demo
from jobs.stack.launch import NotStarted, Stack
from jobs.stack.lock import AlreadyRunning, PortTaken, running_address
from jobs.stack.prepare import NoDatabase
from jobs.stack.progress import Board, log_tail, table
from jobs.stack.signals import StopFlag


class Command(BaseCommand):
    help = "Train a small model to add, by SFT and then GRPO, and show what each job learned."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        add_port_argument(parser)

    def handle(self, *, port: int, **_: Any) -> None:
        self.board = Board(self.write)
        self.stopping = StopFlag()
        try:
            with self.served(port) as tend:
                jobs = self.follow(submit_demo(first_admin()), tend)
                self.judge(jobs)
        except (AlreadyRunning, PortTaken, NoBroker, NoDatabase, NotStarted) as error:
            raise CommandError(str(error)) from None

    @contextmanager
    def served(self, port: int) -> Iterator[Callable[[], None]]:
        """Use the stack that runs, or run one meanwhile; what is yielded keeps it alive."""
        if address := running_address(settings.NIGHTSHIFT_HOME):
            self.board.say(f"Using the stack that serves {address}")
            yield lambda: None
            return
        with Stack(port, say=self.board.say, stopping=self.stopping) as stack:
            yield stack.tend

    def follow(self, jobs: list[Job], tend: Callable[[], None]) -> list[Job]:
        """Show the jobs until all have ended, one has failed, or a stop is asked for; cancel what is left."""
        while not self.stopping() and _worth_waiting(jobs):
            tend()
            self.board.show(jobs)
            time.sleep(0.5)
            jobs = [Job.objects.get(pk=job.pk) for job in jobs]
        for job in jobs:
            with suppress(NotPossible):
                request_cancel(job, by=job.owner)
        self.board.show(jobs)
        return jobs

    def judge(self, jobs: list[Job]) -> None:
        """Print the table, and fail unless every job completed and the second learned enough.

        Raises:
            CommandError: it did not.
        """
        self.write(f"\n{table(jobs)}\n")
        failed = [job for job in jobs if job.status != Job.Status.COMPLETED]
        for job in failed:
            self.write(f"\n{log_tail(job)}\n")
        if failed:
            raise CommandError(f"{len(failed)} of {len(jobs)} jobs did not complete")
        learned = gain(jobs)
        if learned is None or learned < REQUIRED_GAIN:
            found = "was not measured" if learned is None else f"rose by {100 * learned:.1f} points"
            raise CommandError(f"held-out accuracy {found}; at least {100 * REQUIRED_GAIN:.0f} points are required")
        self.write(
            f"GRPO raised held-out accuracy by {100 * learned:.1f} points (required: {100 * REQUIRED_GAIN:.0f}).\n"
        )

    def write(self, text: str) -> None:
        self.stdout.write(text, ending="")
        self.stdout.flush()


def first_admin() -> User:
    """Return the account in whose name the demo's jobs are queued."""
    return User.objects.filter(is_superuser=True).order_by("pk")[:1].get()


def _worth_waiting(jobs: list[Job]) -> bool:
    ended = [job for job in jobs if job.is_finished]
    return len(ended) < len(jobs) and all(job.status == Job.Status.COMPLETED for job in ended)
