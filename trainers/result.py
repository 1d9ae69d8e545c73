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

LIBRARIES = ("torch", "transformers", "peft", "numpy")


def write_result(
    folder: RunFolder, config: TrainConfig, ending: Exit, *, seconds: float, records: Records, facts: dict[str, Any]
) -> None:
    """Write result.json: exit code, error, ``facts`` of the run, the first and last of every metric, what it ran on."""
    first_evaluation, last_evaluation = records.evaluations.get(0), None
    if records.evaluations:
        last_evaluation = records.evaluations[max(records.evaluations)]
    folder.write_json(
        "result.json",
        {
            "exit_code": ending.code,
            "error": None if ending.code == DONE else ending.line,
            **facts,
            "checkpoint_step": folder.checkpoint_step(),
            "seconds": round(seconds, 3),
            "first": records.first,
            "last": records.last,
            "eval_before": first_evaluation,
            "eval_after": last_evaluation,
            "seed": config.seed,
            "versions": {name: version(name) for name in LIBRARIES} | {"python": platform.python_version()},
        },
    )


def data_digests(config: TrainConfig) -> dict[str, str | None]:
    """Return the digests of the training data, and of the evaluation's where there is one."""
    digests = {"data_sha256": data_digest(config.data_path)}
    if config.eval_data_path is not None:
        digests["eval_data_sha256"] = data_digest(config.eval_data_path)
    return digests


def data_digest(value: str) -> str | None:
    """Return the digest of a data file, ``None`` where there is none that may be read."""
    try:
        path = confine_path(value)
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (PathRefused, OSError):
        return None
