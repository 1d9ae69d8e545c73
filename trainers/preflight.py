"""What can be found wrong within a second, before torch is imported."""

import os

from dataset.validation import check_file
from trainers.configs import DataFormat, PathKind, RolloutConfig, TrainConfig, about
from trainers.errors import ConfigurationError
from trainers.paths import confine_path
from trainers.reward_folder import find_reward_model, wants_reward_model

SMALL_FILE = 64 * 2**20  # bytes; larger files are checked row by row as they are read
OFF = "none"


def check_before_start(config: TrainConfig) -> None:
    """Check the paths of ``config``, and every row of data files that are small.

    Raises:
        PathRefused: a path lies outside the allowed folders.
        ConfigurationError: the save folder cannot be written, or a reward model is asked for and missing.
        DataError: a data file is missing, or one of its rows cannot be used.
    """
    for name, kind in path_parameters(config).items():
        confine_path(getattr(config, name), writable=kind is PathKind.OUTPUT)
    require_writable(config.save_dir)
    check_data(config.data_path, config.data_format, strict=config.strict)
    if config.eval_data_path is not None:
        check_data(config.eval_data_path, config.eval_format, strict=config.strict)
    if isinstance(config, RolloutConfig) and wants_reward_model(config):
        find_reward_model(config.reward_model_path)


def path_parameters(config: TrainConfig) -> dict[str, PathKind]:
    """Return the parameters that name something on disk and are set."""
    kinds = {name: about(field).path for name, field in type(config).model_fields.items()}
    return {name: kind for name, kind in kinds.items() if kind and getattr(config, name) not in (None, OFF)}


def require_writable(save_dir: str) -> None:
    """Make the save folder, so that a run does not find out at its end that it cannot."""
    folder = confine_path(save_dir, writable=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"--save_dir: {folder} cannot be made: {error.strerror}") from None
    if not os.access(folder, os.W_OK):
        raise ConfigurationError(f"--save_dir: {folder} cannot be written")


def check_data(value: str, kind: DataFormat, *, strict: bool) -> None:
    """Raise DataError when a small data file has no usable row, or with ``strict`` one that cannot be used."""
    path = confine_path(value)
    if not path.exists() or path.stat().st_size <= SMALL_FILE:
        check_file(path, kind, strict=strict).skipped.require_usable()
