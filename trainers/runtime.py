"""What an algorithm knows of its execution: device, step, records, checkpoint, evaluation, and its orderly end."""

import math
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from dataset.errors import Skipped
from trainers.checkpoint import (
    START_OVER,
    Parts,
    kept_model,
    load_checkpoint,
    load_reference,
    restore,
    save_checkpoint,
    save_kept_model,
    save_reference,
    training_state,
)
from trainers.configs import TrainConfig, stop_at_parts
from trainers.errors import ConfigurationError, Stopped
from trainers.exports import publish, save_model
from trainers.identity import identity_of, require_same
from trainers.monitor import Monitor
from trainers.ranks import ALONE, Ranks
from trainers.records import Records
from trainers.schedule import Schedule


@dataclass(frozen=True)
class Outcome:
    """How a training ended."""

    steps: int
    total_steps: int
    stopped_early: bool = False
    published: str | None = None


@dataclass
class Run:
    """One execution. ``step`` counts optimizer steps; ``extra`` is the algorithm's own part of the checkpoint.

    The main rank writes; every other method is called on all ranks alike, since some of them meet the others.
    """

    config: TrainConfig
    folder: Path
    device: torch.device
    records: Records
    log: Callable[[str], None]
    monitor: Monitor | None = None
    ranks: Ranks = ALONE
    step: int = 0
    total_steps: int = 0
    extra: dict[str, Any] = field(default_factory=dict)
    stop_requested: bool = False
    rows_skipped: int = 0
    data_sha256: str | None = None
    device_name: str | None = None
    schedule: Schedule = field(init=False)
    _parts: Parts = field(default_factory=dict)
    _resumed: bool = False
    _saved_step: int | None = None
    _first_step: int = 0
    _began: float = 0.0
    _step_began: float = 0.0

    def __post_init__(self) -> None:
        scaled = self.device.type == "cuda" and self.config.dtype == "float16"
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=scaled)

    def autocast(self) -> AbstractContextManager[Any]:
        """Return the context of forward passes: ``dtype`` on a GPU, fp32 on the CPU."""
        if self.device.type == "cpu" or self.config.dtype == "float32":
            return nullcontext()
        return torch.autocast(self.device.type, dtype=getattr(torch, self.config.dtype))

    @property
    def rows(self) -> int:
        """Return how many rows of the data are trained on; 0 until they are read."""
        return self.schedule.rows if self.total_steps else 0

    @property
    def kept_model(self) -> Path | None:
        """Return where architecture and tokenizer of the run that is resumed lie; ``None`` when it begins anew."""
        return kept_model(self.folder) if self.config.from_resume else None

    def tell_skipped(self, skipped: Skipped) -> None:
        """Say which rows of the data cannot be used, and keep their number for the result."""
        self.rows_skipped = skipped.count
        if skipped.count:
            self.log(skipped.summary())

    def resume(self, schedule: Schedule, **parts: Any) -> None:
        """Follow ``schedule`` from the checkpoint, if that is asked and there is one, else from the start.

        Args:
            schedule: Of this run.
            parts: What every checkpoint holds, by name: models, optimizers, and whatever else has ``state_dict`` and
                ``load_state_dict``. Models are made alike on every rank.

        Raises:
            ConfigurationError: the checkpoint's step means other rows, or its models have another shape.
        """
        self.schedule, self.total_steps, self._parts = schedule, schedule.total_steps, parts
        state = load_checkpoint(self.folder) if self.config.from_resume else None
        if self.ranks.rank:
            torch.manual_seed(self.config.seed + self.ranks.rank)  # ranks sample and drop out differently
        if state is not None:
            self._restore(state)
        elif self.config.from_resume:
            self.log("no checkpoint to resume from; starting at step 0")
        for part in parts.values():
            if isinstance(part, nn.Module):
                self.ranks.copy_from_main(part)
        self.records.drop_after(self.step if state is not None else -1)
        self._first_step = self.step

    def keep_model(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        """Hold on to architecture and tokenizer: a resumed run needs its checkpoint alone."""
        if not self._resumed and self.ranks.is_main:
            save_kept_model(self.folder, model, tokenizer)

    def keep_reference(self, reference: nn.Module) -> None:
        """Hold on to the weights a run started from: a resumed run goes on with them, whatever became of their file."""
        if self._resumed:
            if (kept := load_reference(self.folder)) is None:
                raise ConfigurationError(f"the checkpoint holds no reference: its run had no KL term; {START_OVER}")
            reference.load_state_dict(kept)
        elif self.ranks.is_main:
            save_reference(self.folder, reference)
        self.ranks.copy_from_main(reference)

    def target_reached(self, evaluate: Callable[[], dict[str, float]]) -> bool:
        """Evaluate if it is time to, and return whether ``stop_at`` is met."""
        if self.config.eval_data_path is None or not self._evaluation_due():
            return False
        # An earlier attempt may have ended right after it; ranks that disagreed would part ways.
        values = self.ranks.from_main(self.records.evaluations.get(self.step))
        if values is None:
            values = self.ranks.from_main(evaluate())
            self._record(values)
            self.log(f"evaluation at step {self.step}: " + ", ".join(f"{k}: {v:.4g}" for k, v in values.items()))
        return reached(self.config.stop_at, values)

    def begin_step(self) -> None:
        """Count the optimizer step that begins now, unless a request came during an evaluation.

        Raises:
            Stopped: the run was asked to end.
        """
        self.stop_if_requested()
        self._step_began = time.perf_counter()
        if self.step == self._first_step:
            self._began = self._step_began  # the evaluation before it says nothing of the time left
        self.step += 1

    def count(self, name: str, value: Tensor | int) -> int:
        """Add this step's ``value`` of every rank to the running total ``name``, which checkpoints keep; return it."""
        self.extra[name] = self.extra.get(name, 0) + int(self.ranks.sum(value))
        return int(self.extra[name])

    def log_due(self) -> bool:
        """Return whether this step is logged: the first, every ``log_interval``, the last."""
        return self.step in (1, self.total_steps) or self.step % self.config.log_interval == 0

    def report(self, values: Mapping[str, float], *, shown: Mapping[str, str]) -> None:
        """Record the values of this step, and log those that ``shown`` gives a short name.

        A step that the scaler skipped, because fp16 overflowed, is recorded without its gradient's norm.
        """
        now = time.perf_counter()
        if self.scaler.is_enabled():
            values = {name: value for name, value in values.items() if math.isfinite(value)}
        left = int((now - self._began) / (self.step - self._first_step) * (self.total_steps - self.step))
        self._record({**values, "step_time": now - self._step_began})
        plan, said = self.schedule, [f"{shown[name]}: {values[name]:.4g}" for name in shown if name in values]
        self.log(
            f"Epoch:[{plan.epoch_of(self.step)}/{plan.epochs}]({plan.step_in_epoch(self.step)}/"
            f"{plan.steps_per_epoch}), {', '.join(said)}, {now - self._step_began:.2f} s, "
            f"left: {left // 60}:{left % 60:02d}"
        )

    def save_or_stop(self) -> None:
        """Write a checkpoint every ``save_interval`` steps, and before ending on request.

        Raises:
            Stopped: the run was asked to end.
        """
        self.stop_if_requested()
        if self.step % self.config.save_interval == 0:
            self.save()

    def stop_if_requested(self) -> None:
        """Write a checkpoint and end, if that is asked.

        Raises:
            Stopped: the run was asked to end.
        """
        if self.ranks.any(self.stop_requested):
            self.save()
            raise Stopped(f"stopped on request; the checkpoint is at step {self.step} of {self.total_steps}")

    def changed(self) -> None:
        """Let the next save write this step anew: what a checkpoint holds has changed since, without a step."""
        self._saved_step = None

    def save(self) -> None:
        """Write a checkpoint of this step, unless there is one."""
        if self._saved_step == self.step:
            return
        state = training_state(
            self._parts,
            step=self.step,
            epoch=self.schedule.epoch_of(self.step),
            made_with=self._identity(),
            extra={**self.extra, "scaler": self.scaler.state_dict()},
            ranks=self.ranks,
        )
        if self.ranks.is_main:
            save_checkpoint(self.folder, state)
        self.ranks.wait()  # a process that ended meanwhile would have this one ended too
        self._saved_step = self.step

    def finish(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Outcome:
        """Write the last checkpoint (a resume may raise ``epochs``), the model folder and the published weights."""
        self.save()
        published = None
        if self.ranks.is_main:
            save_model(model, tokenizer, self.folder / "model")
            published = publish(model, self.config)
        self.log(
            f"finished at step {self.step} of {self.total_steps}; weights in {self.folder / 'model'}"
            + (f" and, as fp16, in {published}" if published else "; the scripts have no such architecture")
        )
        return Outcome(self.step, self.total_steps, self.step < self.total_steps, published)

    def _restore(self, state: dict[str, Any]) -> None:
        require_same(state["made_with"], self._identity())
        extra = restore(state, self._parts, ranks=self.ranks)
        scaler = extra.pop("scaler")
        if self.scaler.is_enabled() and scaler:
            self.scaler.load_state_dict(scaler)
        self.step, self.extra, self._saved_step = state["step"], extra, state["step"]
        self._resumed = True
        self.log(f"resumed from the checkpoint at step {self.step}")

    def _identity(self) -> dict[str, Any]:
        return identity_of(self.config, self.schedule, self.ranks, self.data_sha256)

    def _evaluation_due(self) -> bool:
        interval = self.config.eval_interval
        return self.step in (0, self.total_steps) or (interval > 0 and self.step % interval == 0)

    def _record(self, values: Mapping[str, float]) -> None:
        self.records.metrics(self.step, values, epoch=self.schedule.epoch_of(self.step), total_steps=self.total_steps)
        if self.monitor is not None:
            self.monitor.log(dict(values), step=self.step)


def reached(stop_at: str | None, values: Mapping[str, float]) -> bool:
    """Return whether an evaluation meets ``stop_at``, such as ``eval/sampled_accuracy>=0.35``."""
    if stop_at is None:
        return False
    metric, relation, bound = stop_at_parts(stop_at)
    if metric not in values:
        return False
    return values[metric] >= bound if relation == ">=" else values[metric] <= bound
