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
from jobs.stack.demo_all import submit_all
from jobs.stack.demo_batch import Claim, submit_demo
from jobs.stack.launch import NotStarted, Stack
from jobs.stack.lock import AlreadyRunning, PortTaken, running_address
from jobs.stack.prepare import NoDatabase
from jobs.stack.progress import Board, log_tail, table
from jobs.stack.signals import StopFlag


class Command(BaseCommand):
    help = "Train small models to add, by SFT and then GRPO or by every type, and show what each job learned."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        add_port_argument(parser)
        parser.add_argument("--all", action="store_true", help="SPO, reward model, PPO, DPO and distillation as well")

    def handle(self, *, port: int, all: bool, **_: Any) -> None:  # noqa: A002  # the flag's name
        self.board = Board(self.write)
        self.stopping = StopFlag()
        try:
            with self.served(port) as tend:
                demo = (submit_all if all else submit_demo)(first_admin())
                self.judge(self.follow(demo.jobs, tend), demo.claims)
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

    def judge(self, jobs: list[Job], claims: list[Claim]) -> None:
        """Print the table, and fail unless every job completed and learned enough.

        Raises:
            CommandError: it did not.
        """
        self.write(f"\n{table(jobs)}\n")
        failed = [job for job in jobs if job.status != Job.Status.COMPLETED]
        for job in failed:
            self.write(f"\n{log_tail(job)}\n")
        if failed:
            raise CommandError(f"{len(failed)} of {len(jobs)} jobs did not complete")
        missed = [claim for claim in claims if not self.shown(claim, jobs)]
        if missed:
            raise CommandError(f"{len(missed)} of {len(claims)} jobs did not learn what is required")

    def shown(self, claim: Claim, jobs: list[Job]) -> bool:
        """Print what a claim comes to, and return whether it holds."""
        gained = claim.gain(jobs)
        found = "an unmeasured number of" if gained is None else f"{gained:.1f}"
        self.write(f"{claim.learned} {found} points (required: {claim.points:g}).\n")
        return gained is not None and gained >= claim.points

    def write(self, text: str) -> None:
        self.stdout.write(text, ending="")
        self.stdout.flush()


def first_admin() -> User:
    """Return the account in whose name the demo's jobs are queued."""
    return User.objects.filter(is_superuser=True).order_by("pk")[:1].get()


def _worth_waiting(jobs: list[Job]) -> bool:
    ended = [job for job in jobs if job.is_finished]
    return len(ended) < len(jobs) and all(job.status == Job.Status.COMPLETED for job in ended)
