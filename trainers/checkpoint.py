"""checkpoint/: everything a run needs to continue as if it had never stopped, in fp32."""

import json
import os
import random
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

from trainers.errors import ConfigurationError

State = dict[str, Any]


def training_state(model: nn.Module, optimizer: torch.optim.Optimizer, *, step: int, epoch: int,
                   extra: State | None = None) -> State:
    """Return the state after optimizer step ``step``; ``extra`` is the algorithm's own, of tensors and plain values."""
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step, "epoch": epoch,
            "random": random_state(), "extra": extra or {}}


def save_checkpoint(folder: Path, state: State) -> None:
    """Write ``state`` under the run folder; a kill at any moment leaves the previous checkpoint usable."""
    target = folder / "checkpoint"
    target.mkdir(parents=True, exist_ok=True)
    temporary = target / "state.tmp"
    with temporary.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, target / "state.pt")
    _sync(target)
    meta = target / "meta.tmp"
    meta.write_text(json.dumps({"step": state["step"], "epoch": state["epoch"], "time": time.time()}), encoding="utf-8")
    os.replace(meta, target / "meta.json")


def load_checkpoint(folder: Path) -> State | None:
    """Return the last state written under the run folder, on the CPU, or ``None``."""
    path = folder / "checkpoint" / "state.pt"
    if not path.exists():
        return None
    state: State = torch.load(path, map_location="cpu", weights_only=True)
    return state


def restore(state: State, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Put ``state`` back into model, optimizer and random generators; learning rate and decay stay the new ones.

    Raises:
        ConfigurationError: the checkpoint belongs to a model of another shape.
    """
    try:
        model.load_state_dict(state["model"])
    except RuntimeError as error:
        raise ConfigurationError("the checkpoint holds a model of another shape; start a new job, or resume with the "
                                 f"parameters it was made with ({str(error).splitlines()[1].strip()})") from None
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state["optimizer"]["state"], "param_groups": groups})
    set_random_state(state["random"])


def random_state() -> State:
    """Return the state of every random generator a run draws from."""
    return {"python": random.getstate(), "torch": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []}


def set_random_state(state: State) -> None:
    """Put the random generators back to ``state``; GPUs only where there are as many as then."""
    random.setstate(state["python"])
    torch.set_rng_state(state["torch"])
    if state["cuda"] and len(state["cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(state["cuda"])


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
