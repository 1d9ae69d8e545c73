"""One attempt at a training, from its first log line to its exit code. Imports torch after the first line."""

import importlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from trainers.cli import BAD_CONFIGURATION, Command
from trainers.exits import DONE, FAILED, Exit, exit_of
from trainers.folder import RunFolder, new_name
from trainers.paths import PathRefused
from trainers.preflight import check_before_start
from trainers.records import Records
from trainers.result import write_result

if TYPE_CHECKING:
    from trainers.runtime import Outcome, Run


def run_attempt(command: Command) -> int:
    """Run the training that ``command`` describes, and return the exit code that ``trainers.exits`` lists."""
    began = time.monotonic()
    if several_ranks() and command.options.run_dir is None:
        sys.stderr.write("error: --run_dir is needed with several processes, which share it\n")
        return BAD_CONFIGURATION
    try:
        folder = RunFolder(command.options.run_dir or new_name(command.config.type_name), writes=is_main_rank())
        folder.begin(command)
    except (PathRefused, OSError) as error:
        sys.stderr.write(f"error: --run_dir: {error}\n")
        return BAD_CONFIGURATION
    ending, progress = _train(command, folder)
    if not is_main_rank():
        return ending.code
    try:
        write_result(
            folder,
            command.config,
            ending,
            seconds=time.monotonic() - began,
            records=Records(folder.path),
            progress=progress,
        )
    except OSError as error:  # without its result a run counts as failed
        sys.stderr.write(f"error: result.json cannot be written: {error.strerror}\n")
        return ending.code or FAILED
    return ending.code


def _train(command: Command, folder: RunFolder) -> tuple[Exit, dict[str, Any]]:
    run: Run | None = None
    outcome: Outcome | None = None
    try:
        check_before_start(command.config)
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads that spin at barriers slow a shared CPU threefold
        from trainers.ranks import join_ranks, leave_ranks
        from trainers.runtime import build_run

        ranks = join_ranks()
        run = build_run(command.config, folder.path, device=command.options.device, log=folder.log, ranks=ranks)
        with stopping_on_signals(run):
            outcome = importlib.import_module(f"trainers.{command.config.type_name}").train(command.config, run)
        ranks.wait()  # until the main rank has written everything
        leave_ranks()
        ending = Exit(DONE, "", "")
    except Exception as error:
        ending = exit_of(error, command.config)
        folder.log_error(ending.log)
    return ending, _progress(run, outcome)


@contextmanager
def stopping_on_signals(run: "Run") -> Iterator[None]:
    """Let SIGTERM and SIGINT end the run after the step that is under way; a second Ctrl-C ends it at once."""

    def request_stop(number: int, frame: FrameType | None) -> None:
        run.stop_requested = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    previous = {number: signal.signal(number, request_stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def several_ranks() -> bool:
    """Return whether ``torchrun`` started other processes beside this one."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def is_main_rank() -> bool:
    """Return whether this process writes the run folder."""
    return os.environ.get("RANK", "0") == "0"


def _progress(run: "Run | None", outcome: "Outcome | None") -> dict[str, Any]:
    return {
        "steps": run.step if run else 0,
        "total_steps": run.total_steps if run else 0,
        "stopped_early": outcome.stopped_early if outcome else False,
        "rows_skipped": run.rows_skipped if run else 0,
        "published": outcome.published if outcome else None,
        "device": str(run.device) if run else None,
    }
