"""checkpoint/: everything a run needs to continue as if it had never stopped, in fp32."""

import json
import random
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

from trainers.atomic import replacing
from trainers.errors import ConfigurationError, as_configuration_error

State = dict[str, Any]
KEYS = {"model", "optimizer", "step", "epoch", "random", "extra"}  # of training_state
START_OVER = "start over with --from_resume 0, or start a new job"


def training_state(
    model: nn.Module, optimizer: torch.optim.Optimizer, *, step: int, epoch: int, extra: State | None = None
) -> State:
    """Return the state after optimizer step ``step``; ``extra`` is the algorithm's own, of tensors and plain values."""
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "step": step,
        "epoch": epoch,
        "random": random_state(),
        "extra": extra or {},
    }


def save_checkpoint(folder: Path, state: State) -> None:
    """Write ``state`` under the run folder; a kill at any moment leaves the previous checkpoint usable."""
    target = folder / "checkpoint"
    _write(state, target / "state.pt")
    with replacing(target / "meta.json") as meta:
        meta.write_text(json.dumps({"step": state["step"], "epoch": state["epoch"], "time": time.time()}))


def load_checkpoint(folder: Path) -> State | None:
    """Return the last state written under the run folder, on the CPU, or ``None``.

    Raises:
        ConfigurationError: the file is damaged, or is no checkpoint.
    """
    path = folder / "checkpoint" / "state.pt"
    state = _read(path)
    if state is not None and (missing := KEYS - state.keys()):
        raise ConfigurationError(f"{path} is no checkpoint: it has no {', '.join(sorted(missing))}; {START_OVER}")
    return state


def save_reference(folder: Path, reference: nn.Module) -> None:
    """Write the weights that a run started from beside its checkpoints."""
    _write(reference.state_dict(), folder / "checkpoint" / "reference.pt")


def load_reference(folder: Path) -> State | None:
    """Return the weights that ``save_reference`` wrote, on the CPU, or ``None``. Raises as ``load_checkpoint``."""
    return _read(folder / "checkpoint" / "reference.pt")


def restore(state: State, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Put ``state`` back into model, optimizer and random generators; learning rate and decay stay the new ones.

    Raises:
        ConfigurationError: the checkpoint belongs to a model of another shape.
    """
    try:
        model.load_state_dict(state["model"])
    except RuntimeError as error:
        raise ConfigurationError(
            "the checkpoint holds a model of another shape; start a new job, or resume with the "
            f"parameters it was made with ({str(error).splitlines()[1].strip()})"
        ) from None
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state["optimizer"]["state"], "param_groups": groups})
    set_random_state(state["random"])


def random_state() -> State:
    """Return the state of every random generator a run draws from."""
    return {
        "python": random.getstate(),
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def set_random_state(state: State) -> None:
    """Put the random generators back to ``state``; GPUs only where there are as many as then."""
    random.setstate(state["python"])
    torch.set_rng_state(state["torch"])
    if state["cuda"] and len(state["cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(state["cuda"])


def _write(state: State, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary, temporary.open("wb") as file:  # by its name alone torch hides why it failed
        torch.save(state, file)


def _read(path: Path) -> State | None:
    if not path.exists():
        return None
    with as_configuration_error(f"{path} cannot be read", f"; {START_OVER}"):
        state = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(state, dict):
        raise ConfigurationError(f"{path} holds something else than a checkpoint; {START_OVER}")
    return state
