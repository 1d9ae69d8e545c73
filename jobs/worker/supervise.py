"""Run one attempt from its folder to its recorded end."""

import logging
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from django.db import DataError, IntegrityError, transaction

from jobs.models import Artifact, Attempt, Job
from jobs.services.attempts import Fenced, finish_attempt, requeue_attempt
from jobs.worker.artifacts import bring_results, register
from jobs.worker.diagnosis import explain
from jobs.worker.disk import folder_bytes
from jobs.worker.environment import trainer_environment
from jobs.worker.link import Link, persist
from jobs.worker.memory import oom_kills
from jobs.worker.outcome import Asked, Ending, Wish, classify, completed, read_result
from jobs.worker.process import TrainerProcess, lock_of
from jobs.worker.run_folder import finished_result, prepare_folder, tell_start_over
from jobs.worker.ship import Shipper
from jobs.worker.time_limit import TimeLimit
from jobs.worker.weights import missing_weights

TURN = 0.05  # seconds
OWN_TRAINER = "NIGHTSHIFT_TRAINER"  # a script that runs instead of ``-m trainers``, for trials of the queue itself

logger = logging.getLogger(__name__)


def run_attempt(attempt: Attempt, *, is_draining: Callable[[], bool]) -> None:
    """Supervise the attempt; a fault of the worker itself puts the job back in the queue."""
    try:
        supervise(attempt, is_draining=is_draining)
    except Fenced as error:
        logger.warning("%s; its trainer was ended", error)
    except Exception as error:
        logger.exception("attempt %s", attempt)
        ending = Ending(outcome=Attempt.Outcome.LOST, cause=f"the worker failed: {error}", again=True)
        persist(lambda: record_end(attempt, ending))


def supervise(attempt: Attempt, *, is_draining: Callable[[], bool]) -> None:
    """Run the attempt's command to its end and record it.

    Raises:
        Fenced: the lease went to another; the trainer is dead and nothing was recorded.
    """
    folder = prepare_folder(attempt)
    kept = finished_result(folder)
    shipper, limit = Shipper(attempt, folder, only_new=kept is None), TimeLimit(attempt)
    tell_start_over(attempt, folder)
    link = Link(attempt, shipper, limit)
    link.start()
    fenced, rows = link.fenced.is_set, list[Artifact]()

    def wished() -> Wish | None:
        return strongest_wish(link, limit, is_draining())

    try:
        ending = completed(kept) if kept else missing_weights(attempt, folder, fenced=fenced, wished=wished)
        ending = ending or train(attempt, folder, link, wished)
        if ending.outcome == Attempt.Outcome.COMPLETED:
            ending, rows = bring_results(attempt, folder, ending, fenced=fenced, wished=wished)
    finally:
        link.close()
    if link.fenced.is_set():
        raise Fenced(f"attempt {attempt} no longer holds the lease")
    ship_rest(shipper)
    persist(lambda: record_end(attempt, ending, folder=folder, rows=rows))


def train(attempt: Attempt, folder: Path, link: Link, wished: Callable[[], Wish | None]) -> Ending:
    """Run the trainer to its end, and say how that was."""
    killed_before = oom_kills()
    process = start_trainer(attempt, folder)
    link.pid = process.pid
    try:
        wish = watch(process, link, wished)
    finally:
        status = process.finish()
    output, oom_killed = process.output_end, oom_kills() > killed_before
    ending = classify(status, folder, output=output, wish=wish, oom_killed=oom_killed)
    return explain(attempt, ending, output, folder=folder, by_kernel=oom_killed)


def start_trainer(attempt: Attempt, folder: Path) -> TrainerProcess:
    """Start the command on the attempt's devices."""
    devices = list(attempt.devices.order_by("index", "pk"))
    if not devices:
        raise RuntimeError("an attempt needs a device")
    own = os.environ.get(OWN_TRAINER)
    arguments = [own, *attempt.command[3:]] if own else attempt.command[1:]
    home = str(settings.NIGHTSHIFT_HOME)
    return TrainerProcess(
        [sys.executable, *arguments],
        environment=trainer_environment(devices, home=home, token=str(attempt.token)),
        locks=[*(lock_of(device.key) for device in devices), lock_of(attempt.job.run_dir)],
        log=folder / "log.txt",
    )


def watch(process: TrainerProcess, link: Link, wished: Callable[[], Wish | None]) -> Wish | None:
    """Wait for the end, and bring it about when somebody wishes; return the strongest wish."""
    wish: Wish | None = None
    while process.is_running():
        if link.may_train_on():
            process.beat()
        wish = max(filter(None, (wish, wished())), default=None)
        if link.fenced.is_set():
            process.kill()
        elif wish is not None:
            process.stop(settings.NIGHTSHIFT_GRACE)
        time.sleep(TURN)
    return wish


def strongest_wish(link: Link, limit: TimeLimit, draining: bool) -> Wish | None:
    """Return why the attempt shall end now, if it shall."""
    if link.cancel_asked.is_set():
        return Wish(Asked.CANCEL)
    if limit.is_reached():
        return Wish(Asked.TIME_LIMIT, f"time limit of {limit} reached")
    if link.yield_reason:
        return Wish(Asked.YIELD, link.yield_reason)
    return Wish(Asked.DRAIN, "the worker was stopped") if draining else None


def ship_rest(shipper: Shipper, *, write: Callable[[Callable[[], bool]], object] = persist) -> None:
    """Ship until the run folder holds nothing new; ``write`` says what to do while the database is away."""
    while shipper.has_news():
        try:
            write(shipper.ship)
        except (DataError, IntegrityError):
            logger.exception("rows that the database refuses are left out")
            shipper.give_up_load()


def record_end(
    attempt: Attempt, ending: Ending, *, folder: Path | None = None, rows: list[Artifact] | None = None
) -> None:
    """Write the ending, and the files that can be downloaded, in one transaction; nothing when fenced."""
    try:
        with transaction.atomic():
            if ending.again:
                requeue_attempt(
                    attempt, ending.outcome, cause=ending.cause, advice=ending.advice, exit_code=ending.exit_code
                )
            else:
                result = read_result(folder) if folder else None
                finish_attempt(
                    attempt,
                    ending.outcome,
                    cause=ending.cause,
                    advice=ending.advice,
                    exit_code=ending.exit_code,
                    result=result,
                )
                register(rows or [])
            if folder is not None:
                Job.objects.filter(pk=attempt.job_id).update(disk_bytes=folder_bytes(folder))
    except Fenced as error:
        logger.warning("%s; its end is not recorded", error)
