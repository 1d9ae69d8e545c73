"""Which waiting job each device is expected to take next. Knows no database."""

from collections.abc import Iterable
from datetime import UTC, datetime

from jobs.services.placement import Ask, Plan, Slot, State, choose

NEVER = datetime.max.replace(tzinfo=UTC)


def next_in_line(state: State, made: Plan) -> dict[int, int]:
    """Return the job that comes next on each device, by device: those that start now, else in the plan's order.

    A job that has to wait is given the devices that suit it and are free soonest.
    """
    asks = {ask.job: ask for ask in state.asks}
    taken = {device: job for job, devices in made.starts.items() for device in devices}
    left = sorted((slot for slot in state.slots if not slot.closed and slot.device not in taken), key=_soonest)
    for job in made.positions:
        if not left:
            break
        if job not in made.starts and job in asks:
            devices = _soonest_choice(asks[job], left, state.now)
            taken |= dict.fromkeys(devices, job)
            left = [slot for slot in left if slot.device not in devices]
    return taken


def _soonest(slot: Slot) -> tuple[bool, datetime, int]:
    return slot.busy, slot.free_at or NEVER, slot.device


def _soonest_choice(ask: Ask, slots: list[Slot], now: datetime) -> Iterable[int]:
    if not choose(ask, slots, now=now):
        return ()
    return next(found for n in range(ask.count, len(slots) + 1) if (found := choose(ask, slots[:n], now=now)))
