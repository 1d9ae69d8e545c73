"""The processes of one training: alone, or several that ``torchrun`` started, one per device.

Every rank computes its share of each optimizer batch as a part of the whole batch's loss; gradients are summed over the
ranks in ``trainers.optim.optimizer_step``, the one place through which every algorithm steps. Nothing wraps the model,
so no forward pass can go around the reduction, and rollouts and scoring use the model as it is.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch import distributed as dist

from trainers.errors import Parted, is_out_of_memory

MEETING_POINT = "NIGHTSHIFT_MEETING_POINT"  # where processes that `--processes` started find each other
Item = TypeVar("Item")


@dataclass(frozen=True)
class Ranks:
    """Which of how many processes this one is; every method is a plain identity where there is only one."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0  # among those of this machine: its GPU

    @property
    def is_main(self) -> bool:
        """Return whether this process writes the run's files."""
        return self.rank == 0

    def sum(self, value: Tensor | float) -> Tensor:
        """Return the sum of ``value`` over the ranks, without gradient."""
        total = torch.as_tensor(value).detach().clone()
        if self.world_size > 1:
            with together():
                dist.all_reduce(total)
        return total

    def any(self, flag: bool) -> bool:
        """Return whether ``flag`` is set on any rank, the same on all of them."""
        return bool(self.sum(float(flag)) > 0) if self.world_size > 1 else flag

    def gather(self, value: Item) -> list[Item]:
        """Return what every rank holds, in the order of ranks; of tensors and plain values."""
        if self.world_size == 1:
            return [value]
        found: list[Any] = [None] * self.world_size
        with together():
            dist.all_gather_object(found, value)
        return found

    def cat(self, value: Tensor) -> Tensor:
        """Return the rows of every rank's ``value``, [n, ...], on the CPU when there are several ranks."""
        return torch.cat(self.gather(value.cpu())) if self.world_size > 1 else value

    def from_main(self, value: Item) -> Item:
        """Return what the main rank holds."""
        return self.gather(value)[0]

    @torch.no_grad()
    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Sum the gradients over the ranks, in one message; a missing one (an idle expert's) counts as zeros."""
        if self.world_size == 1:
            return
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        for parameter in trained:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        flat = torch.cat([parameter.grad.flatten() for parameter in trained])  # type: ignore[union-attr]  # set above
        with together():
            dist.all_reduce(flat)
        for parameter, part in zip(trained, flat.split([p.numel() for p in trained]), strict=True):
            parameter.grad = part.view_as(parameter)

    @torch.no_grad()
    def copy_from_main(self, model: nn.Module) -> None:
        """Give every rank the main rank's weights."""
        if self.world_size > 1:
            for tensor in model.state_dict().values():
                with together():
                    dist.broadcast(tensor, src=0)

    def wait(self) -> None:
        """Return once every rank has come here."""
        if self.world_size > 1:
            with together():
                dist.barrier()


@contextmanager
def together() -> Iterator[None]:
    """Turn what a library says when another process is gone into ``Parted``."""
    try:
        yield
    except RuntimeError as error:
        if is_out_of_memory(error):
            raise
        raise Parted(str(error)) from error


ALONE = Ranks()


def join_ranks() -> Ranks:
    """Meet the processes that ``torchrun`` or ``--processes`` started beside this one; alone without them."""
    world_size = int(os.environ.get("WORLD_SIZE", "1"))
    if world_size == 1:
        return ALONE
    rank = int(os.environ["RANK"])
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    with together():
        dist.init_process_group(
            backend, init_method=os.environ.get(MEETING_POINT, "env://"), rank=rank, world_size=world_size
        )
    return Ranks(rank, world_size, int(os.environ.get("LOCAL_RANK", rank)))


def leave_ranks() -> None:
    """Part from the other processes."""
    if dist.is_initialized():
        dist.destroy_process_group()
