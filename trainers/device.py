"""The device that a run computes on."""

import platform
from pathlib import Path

import torch

from trainers.errors import ConfigurationError
from trainers.ranks import ALONE, Ranks


def choose_device(name: str | None, *, ranks: Ranks = ALONE) -> torch.device:
    """Return the device of that name; without one this process's GPU, else the CPU.

    Raises:
        ConfigurationError: there is no such device, or several processes would share it.
    """
    found = torch.cuda.device_count()
    if ranks.world_size > 1 and name not in (None, "cpu"):
        raise ConfigurationError(f"--device {name}: each of {ranks.world_size} processes takes its own; leave it out")
    name = name or (f"cuda:{ranks.local_rank}" if found else "cpu")
    if name == "cpu":
        return torch.device("cpu")
    kind, _, number = name.partition(":")
    if kind != "cuda" or not (number or "0").isdecimal() or int(number or 0) >= found:
        raise ConfigurationError(
            f"--device {name}: there are {found} GPUs here; use cpu"
            + "".join(f", cuda:{index}" for index in range(found))
        )
    torch.cuda.set_device(int(number or 0))
    return torch.device("cuda", int(number or 0))


def device_name(device: torch.device) -> str:
    """Return the GPU's name, or the processor's as Linux has it."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
