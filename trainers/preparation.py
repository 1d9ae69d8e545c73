"""Make a run ready: its device, its random generators, its monitor."""

import random
from collections.abc import Callable
from pathlib import Path

import torch

from trainers.configs import TrainConfig
from trainers.device import choose_device, device_name
from trainers.monitor import open_monitor
from trainers.ranks import ALONE, Ranks
from trainers.records import Records
from trainers.runtime import Run


def build_run(
    config: TrainConfig, folder: Path, *, device: str | None, log: Callable[[str], None], ranks: Ranks = ALONE
) -> Run:
    """Return the run of ``config``, its device chosen and every random generator seeded; the main rank logs.

    Raises:
        ConfigurationError: there is no such device.
    """
    if not ranks.is_main:
        log = _silent
    chosen = choose_device(device, ranks=ranks)
    if chosen.type == "cpu":
        ignored = "" if config.dtype == "float32" else f" (dtype {config.dtype} is for GPUs)"
        log(f"device: cpu, {torch.get_num_threads()} threads, float32{ignored}")
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # slow and no use here
    else:
        log(f"device: {chosen} ({device_name(chosen)}), {config.dtype}")
    if ranks.world_size > 1:
        log(f"{ranks.world_size} processes: every optimizer step takes {ranks.world_size} times the batch")
    random.seed(config.seed)
    torch.manual_seed(config.seed)
    monitor = open_monitor(config, name=folder.name, folder=str(folder)) if ranks.is_main else None
    return Run(
        config,
        folder,
        chosen,
        Records(folder, writes=ranks.is_main),
        log,
        monitor,
        ranks,
        device_name=device_name(chosen),
    )


def _silent(line: str) -> None:
    """Log nothing: only the main rank does."""
