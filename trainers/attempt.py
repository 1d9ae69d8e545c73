"""One attempt at a training, from its first log line to its exit code. Imports torch after the first line."""

import importlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from trainers.cli import BAD_CONFIGURATION, Command
from trainers.errors import ConfigurationError, Parted, is_storage_fault
from trainers.exits import DONE, FAILED, Exit, exit_of
from trainers.folder import RunFolder, new_name
from trainers.monitor import close_monitor
from trainers.paths import PathRefused
from trainers.preflight import check_before_start
from trainers.processes import Endings, is_main, world_size
from trainers.records import Records
from trainers.result import data_digests, write_result
from trainers.revision import code_revision

if TYPE_CHECKING:
    from trainers.runtime import Outcome, Run


def run_attempt(command: Command) -> int:
    """Run the training that ``command`` describes, and return the exit code that ``trainers.exits`` lists."""
    began = time.monotonic()
    try:
        folder = open_folder(command)
    except (PathRefused, OSError) as error:
        return _refused(f"--run_dir: {error}", FAILED if is_storage_fault(error) else BAD_CONFIGURATION)
    except ConfigurationError as error:
        return _refused(str(error))
    with ExitStack() as until_written:
        ending, facts = _train(command, folder, until_written)
        if not is_main():
            return ending.code
        try:
            records = Records(folder.path)
            seconds = time.monotonic() - began
            write_result(folder, command.config, ending, seconds=seconds, records=records, facts=facts)
        except OSError as error:  # without its result a run counts as failed
            sys.stderr.write(f"error: result.json cannot be written: {error.strerror}\n")
            return ending.code or FAILED
    return ending.code


def open_folder(command: Command) -> RunFolder:
    """Return the run folder, begun anew or continued.

    Raises:
        ConfigurationError: several processes were given none to share.
        PathRefused, OSError: it cannot be written.
    """
    if world_size() > 1 and command.options.run_dir is None:
        raise ConfigurationError("--run_dir is needed with several processes, which share it")
    folder = RunFolder(command.options.run_dir or new_name(command.config.type_name))
    folder.begin(command)
    Endings(folder.path).begin()
    return folder


def _train(command: Command, folder: RunFolder, until_written: ExitStack) -> tuple[Exit, dict[str, Any]]:
    config, endings = command.config, Endings(folder.path)
    facts: dict[str, Any] = {"processes": world_size(), "data_sha256": None}
    run: Run | None = None
    outcome: Outcome | None = None
    try:
        check_before_start(config)
        facts |= {"code_revision": code_revision(), **data_digests(config)} if is_main() else {}
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads that spin at barriers slow a shared CPU threefold
        from trainers.preparation import build_run
        from trainers.ranks import join_ranks, leave_ranks

        ranks = join_ranks()
        run = build_run(config, folder.path, device=command.options.device, log=folder.log, ranks=ranks)
        run.data_sha256 = ranks.from_main(facts["data_sha256"])
        until_written.enter_context(stopping_on_signals(run))
        outcome = importlib.import_module(f"trainers.{config.type_name}").train(config, run)
        ranks.wait()  # until the main rank has written everything
        leave_ranks()
        ending = Exit(DONE, "", "")
    except Exception as error:
        ending = exit_of(error, config)
        if not is_main():
            endings.tell(ending)
        else:
            ending = endings.of_others() if isinstance(error, Parted) else ending
            folder.log_error(ending.log)
    if run is not None:
        close_monitor(run.monitor, log=folder.log)
    if is_main():
        endings.close()
    return ending, facts | _progress(run, outcome)


def _refused(reason: str, code: int = BAD_CONFIGURATION) -> int:
    if is_main():
        sys.stderr.write(f"error: {reason}\n")
    return code


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


def _progress(run: "Run | None", outcome: "Outcome | None") -> dict[str, Any]:
    return {
        "steps": run.step if run else 0,
        "total_steps": run.total_steps if run else 0,
        "stopped_early": outcome.stopped_early if outcome else False,
        "rows": run.rows if run else 0,
        "rows_skipped": run.rows_skipped if run else 0,
        "published": outcome.published if outcome else None,
        "device": str(run.device) if run else None,
        "device_name": run.device_name if run else None,
    }
