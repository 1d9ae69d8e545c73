"""result.json: how an attempt ended, in one file that a page can show. Imports no torch."""

import hashlib
import platform
from importlib.metadata import version
from typing import Any

from trainers.configs import TrainConfig
from trainers.exits import DONE, Exit
from trainers.folder import RunFolder
from trainers.paths import PathRefused, confine_path
from trainers.records import Records


def write_result(
    folder: RunFolder, config: TrainConfig, ending: Exit, *, seconds: float, records: Records, progress: dict[str, Any]
) -> None:
    """Write result.json: exit code, error, progress, the first and last of every metric, and what it ran on."""
    first_evaluation, last_evaluation = records.evaluations.get(0), None
    if records.evaluations:
        last_evaluation = records.evaluations[max(records.evaluations)]
    folder.write_json(
        "result.json",
        {
            "exit_code": ending.code,
            "error": None if ending.code == DONE else ending.line,
            **progress,
            "checkpoint_step": folder.checkpoint_step(),
            "seconds": round(seconds, 3),
            "first": records.first,
            "last": records.last,
            "eval_before": first_evaluation,
            "eval_after": last_evaluation,
            "seed": config.seed,
            "versions": {name: version(name) for name in ("torch", "transformers")}
            | {"python": platform.python_version()},
            "data_sha256": data_digest(config),
        },
    )


def data_digest(config: TrainConfig) -> str | None:
    """Return the digest of the data file, ``None`` where there is none that may be read."""
    try:
        path = confine_path(config.data_path)
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (PathRefused, OSError):
        return None
