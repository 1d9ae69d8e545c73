"""Run a training in several processes that share their steps, as ``torchrun`` starts them but forked in milliseconds.

They are forked from a server that has imported torch and has computed nothing yet.
"""

import hashlib
import json
import multiprocessing
import os
import sys
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from trainers import distillation, dpo, grpo, lora, ppo, pretrain, reward, sft, spo  # noqa: F401  # the server imports them once
from trainers.attempt import run_attempt
from trainers.cli import parse_command
from trainers.paths import REPOSITORY
from trainers.ranks import MEETING_POINT
from trainers.runtime import Run

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["tests.trainers.rank_runs"])
Prepare = Callable[[int], None]


def start_ranks(home: Path, argv: Sequence[str], count: int = 2, prepare: Prepare | None = None) -> list:
    """Start ``count`` processes of one run; each first calls ``prepare`` with its number."""
    os.environ.setdefault("PYTHONPATH", str(REPOSITORY))
    meeting = f"file://{home}/meeting-{uuid.uuid4().hex}"
    environment = {"NIGHTSHIFT_HOME": str(home), "WORLD_SIZE": str(count), MEETING_POINT: meeting}
    processes = [
        SERVER.Process(target=_run, args=(rank, list(argv), environment, home, prepare)) for rank in range(count)
    ]
    for process in processes:
        process.start()
    return processes


def run_ranks(home: Path, argv: Sequence[str], count: int = 2, prepare: Prepare | None = None) -> list[int]:
    """Run ``count`` processes to their ends and return their exit codes."""
    return ended(start_ranks(home, argv, count, prepare))


def ended(processes: list, *, within: float = 60.0) -> list[int]:
    """Return the exit codes of processes that end by themselves."""
    for process in processes:
        process.join(within)
    codes = [process.exitcode for process in processes]
    for process in processes:
        process.kill()
    return codes


def said(home: Path, rank: int) -> str:
    """Return what a process wrote to its two streams."""
    return (home / f"said.{rank}").read_text()


def result_of(folder: Path) -> dict:
    return json.loads((folder / "result.json").read_text())


def note_weights(rank: int) -> None:
    """Let every process write the digest of its final weights to ``weights.<rank>`` in the run folder."""
    finish = Run.finish

    def finish_and_note(run: Run, model, tokenizer):
        digest = hashlib.sha256()
        for value in model.state_dict().values():
            digest.update(value.numpy().tobytes())
        (run.folder / f"weights.{rank}").write_text(digest.hexdigest())
        return finish(run, model, tokenizer)

    Run.finish = finish_and_note


def _run(rank: int, argv: list[str], environment: dict[str, str], home: Path, prepare: Prepare | None) -> None:
    os.environ.update(environment, RANK=str(rank), LOCAL_RANK=str(rank))
    os.environ.pop("NIGHTSHIFT_PUMPED", None)
    stream = os.open(home / f"said.{rank}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(stream, 1)
    os.dup2(stream, 2)
    torch.set_num_threads(1)
    if prepare is not None:
        prepare(rank)
    sys.exit(run_attempt(parse_command(argv)))
