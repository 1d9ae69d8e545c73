"""checkpoint/: everything a run needs to continue as if it had never stopped, in fp32."""

import json
import random
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from trainers.atomic import replacing
from trainers.errors import ConfigurationError, as_configuration_error
from trainers.ranks import ALONE, Ranks

State = dict[str, Any]
Parts = Mapping[str, Any]  # whatever a run trains or keeps, by name: each has state_dict() and load_state_dict()
KEYS = {"step", "epoch", "made_with", "random", "extra"}
START_OVER = "start over with --from_resume 0, or start a new job"


def training_state(
    parts: Parts,
    *,
    step: int,
    epoch: int,
    made_with: State | None = None,
    extra: State | None = None,
    ranks: Ranks = ALONE,
) -> State:
    """Return the state after optimizer step ``step``.

    ``extra`` is the algorithm's own, of tensors and plain values; ``made_with`` is what ``trainers.identity`` compares.
    Parts are alike on every rank; random generators and ``extra`` are kept for each.
    """
    return {
        **{name: part.state_dict() for name, part in parts.items()},
        "step": step,
        "epoch": epoch,
        "made_with": made_with or {},
        "random": ranks.gather(random_state()),
        "extra": ranks.gather(extra or {}),
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


def restore(state: State, parts: Parts, *, ranks: Ranks = ALONE) -> State:
    """Put ``state`` back into its parts and the random generators, and return this rank's ``extra``.

    An optimizer keeps its new learning rate and decay.

    Raises:
        ConfigurationError: the checkpoint belongs to models of another shape, or to another training type.
    """
    for name, part in parts.items():
        if name not in state:
            raise ConfigurationError(f"the checkpoint holds no {name}; {START_OVER}")
        try:
            _restore_part(part, state[name])
        except (RuntimeError, ValueError) as error:
            reason = str(error).splitlines()[-1].strip()
            raise ConfigurationError(
                f"the checkpoint's {name} has another shape; start a new job, or resume with the parameters it was "
                f"made with ({reason})"
            ) from None
    set_random_state(state["random"][ranks.rank])
    extra: State = state["extra"][ranks.rank]
    return extra


def _restore_part(part: Any, held: State) -> None:
    if isinstance(part, torch.optim.Optimizer):
        held = {"state": held["state"], "param_groups": part.state_dict()["param_groups"]}
    part.load_state_dict(held)


def random_state() -> State:
    """Return the state of every random generator this process draws from."""
    return {
        "python": random.getstate(),
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state() if torch.cuda.is_available() else None,
    }


def set_random_state(state: State) -> None:
    """Put the random generators back to ``state``; the GPU's only where there is one."""
    random.setstate(state["python"])
    torch.set_rng_state(state["torch"])
    if state["cuda"] is not None and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])


def save_kept_model(folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Write the architecture and the tokenizer beside the checkpoints, which then need no other file to resume from."""
    model.config.save_pretrained(folder / "checkpoint" / "model")
    tokenizer.save_pretrained(folder / "checkpoint" / "model")


def kept_model(folder: Path) -> Path | None:
    """Return the folder that ``save_kept_model`` wrote, if there is a checkpoint to resume from and it is complete."""
    kept = folder / "checkpoint" / "model"
    return kept if (folder / "checkpoint" / "state.pt").exists() and (kept / "config.json").exists() else None


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
