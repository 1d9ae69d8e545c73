"""The run folder: the contract between a trainer, which writes it, and whoever watches. Imports no torch."""

import json
import os
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import Any, TextIO

from trainers.atomic import replacing
from trainers.cli import Command, command_line
from trainers.paths import confine_path
from trainers.processes import is_main, world_size


class RunFolder:
    """One folder under ``runs/``, or wherever ``--run_dir`` says."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.writes = is_main()  # of several ranks only the main one does
        self.path = confine_path(name, writable=True)
        self.path.mkdir(parents=True, exist_ok=True)
        self.pumped = os.environ.get("NIGHTSHIFT_PUMPED") == "1"  # then the worker writes log.txt from our output

    def begin(self, command: Command) -> None:
        """Write the log's first line and config.json; without ``from_resume``, remove what an earlier attempt left."""
        if not self.writes:
            return
        line = shlex.join(["python", *command_line(command.config, self.name)])
        device = f" --device {command.options.device}" if command.options.device else ""
        processes = f" --processes {world_size()}" if world_size() > 1 else ""
        self.log(f"$ {line}{device}{processes}")
        (self.path / "result.json").unlink(missing_ok=True)
        if not command.config.from_resume:
            self._remove_checkpoint()
            for name in ("metrics.jsonl", "samples.jsonl"):
                (self.path / name).unlink(missing_ok=True)
        self.write_json("config.json", {"type": command.config.type_name, **command.config.model_dump()})

    def log(self, line: str) -> None:
        """Write one line to the log."""
        self._write(sys.stdout, line)

    def log_error(self, text: str) -> None:
        """Write what went wrong to the log and to standard error."""
        self._write(sys.stderr, text)

    def write_json(self, name: str, value: dict[str, Any]) -> None:
        """Write a JSON file that is never seen half written."""
        text = json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
        with replacing(self.path / name) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def checkpoint_step(self) -> int | None:
        """Return the step of the last checkpoint, ``None`` where there is none or the note beside it is damaged."""
        try:
            return int(json.loads((self.path / "checkpoint" / "meta.json").read_bytes())["step"])
        except (OSError, ValueError, LookupError, TypeError):
            return None

    def _remove_checkpoint(self) -> None:
        """Remove it at once: half of one, or one that cannot be removed, must not be resumed from later."""
        checkpoint, old = self.path / "checkpoint", self.path / "checkpoint.old"
        if old.exists():
            shutil.rmtree(old)
        if checkpoint.exists():
            checkpoint.rename(old)
            shutil.rmtree(old)

    def _write(self, stream: TextIO, text: str) -> None:
        stream.write(text + "\n")
        stream.flush()
        if not self.pumped and self.writes:
            with (self.path / "log.txt").open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text + "\n")


def new_name(type_name: str) -> str:
    """Return a run folder name that is not taken, for a run started by hand."""
    stem = f"runs/{type_name}-{time.strftime('%Y%m%d-%H%M%S')}"
    names = [stem, *(f"{stem}-{number}" for number in range(2, 1000))]
    return next(name for name in names if not Path(confine_path(name, writable=True)).exists())
