"""An optional second reader of the metrics: Weights & Biases or SwanLab, when installed."""

import importlib
import os
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from trainers.configs import TrainConfig
from trainers.errors import ConfigurationError, first_line


class Monitor(Protocol):
    """What both libraries' runs offer."""

    def log(self, data: dict[str, Any], *, step: int) -> Any:
        """Report the values of one step."""

    def finish(self) -> Any:
        """Send what is left."""


def open_monitor(config: TrainConfig, *, name: str, folder: str) -> Monitor | None:
    """Return the monitor that the parameters ask for. It stays on this machine unless the operator says otherwise.

    Raises:
        ConfigurationError: its library is not installed.
    """
    if config.train_monitor == "none":
        return None
    try:
        library = importlib.import_module(config.train_monitor)
    except ImportError:
        raise ConfigurationError(
            f"--train_monitor {config.train_monitor}: it is not installed; pip install "
            f"{config.train_monitor}, or use none"
        ) from None
    local: Mapping[str, Any] = {"mode": os.environ.get("WANDB_MODE", "offline"), "dir": folder}
    if config.train_monitor == "swanlab":
        local = {"mode": os.environ.get("SWANLAB_MODE", "offline"), "logdir": f"{folder}/swanlab"}
    monitor: Monitor = library.init(project=config.train_project, name=name, config=config.model_dump(), **local)
    return monitor


def close_monitor(monitor: Monitor | None, *, log: Callable[[str], None]) -> None:
    """Let the monitor send what is left; a run does not fail by it."""
    if monitor is None:
        return
    try:
        monitor.finish()
    except Exception as error:
        log(f"warning: the monitor did not finish: {first_line(error)}")
