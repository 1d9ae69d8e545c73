"""Which waiting job starts now, on which devices, and why the others wait. Knows no database.

Workers that claim, the pages' reasons, the expected starts and the simulation of whole nights all use ``plan``.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum, auto

from jobs.models import Job
from jobs.services.fair_share import in_advance

Request = Job.DeviceRequest


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What a job that may start wants."""

    job: int
    owner: int
    queued_at: datetime
    priority: int = 0
    place: int = 0
    request: str = Request.ANY
    device: int | None = None
    label: str = ""
    count: int = 1
    seconds: float | None = None  # how long it is expected to run
    disk: int = 0  # bytes that it is expected to write
    homes: frozenset[str] = frozenset()  # hosts that hold its checkpoint
    prefers_homes_until: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A device that a living worker serves."""

    device: int
    host: str
    kind: str
    labels: frozenset[str] = frozenset()
    busy: bool = False
    free_at: datetime | None = None  # when what runs on it is expected to end
    closed: str = ""  # why nothing new may start on it: drained, or its host is paused
    room: int | None = None  # bytes that a job may write there


@dataclass(frozen=True, kw_only=True)
class State:
    """The queue at one moment."""

    now: datetime
    asks: Iterable[Ask]
    slots: Iterable[Slot]
    used: Mapping[int, float] = field(default_factory=dict)  # device seconds by owner
    running: Mapping[int, int] = field(default_factory=dict)  # jobs by owner
    limits: Mapping[int, int | None] = field(default_factory=dict)  # running jobs by owner
    patience: float = 600.0  # seconds after which a job of several devices keeps devices free for itself


class Why(Enum):
    """Why a job does not start now."""

    TURN = auto()  # others are before it
    LIMIT = auto()  # its owner runs as many as allowed
    NO_DEVICE = auto()  # no host has what it asks for
    CLOSED = auto()  # what it asks for is drained or paused
    DISK = auto()  # the disks have too little room
    HOME = auto()  # the host that holds its checkpoint is busy or away


@dataclass(frozen=True)
class Standing:
    """What keeps a job, and the name or number that belongs into the sentence."""

    why: Why
    detail: str = ""


@dataclass
class Plan:
    """The devices of each job that starts now, in order, and what keeps each of the others."""

    positions: dict[int, int] = field(default_factory=dict)  # of those that start now or wait for their turn, from 1
    starts: dict[int, tuple[int, ...]] = field(default_factory=dict)
    standings: dict[int, Standing] = field(default_factory=dict)
    kept_free: dict[int, int] = field(default_factory=dict)  # for which job a device is kept


class FairOrder:
    """Hand out asks: where an operator put them, priority, whose owner used least, age."""

    def __init__(self, asks: Iterable[Ask], used: Mapping[int, float]) -> None:
        self._queues: dict[int, list[tuple[int, int, int, Ask]]] = defaultdict(list)
        for ask in asks:
            self._queues[ask.owner].append((-ask.place, -ask.priority, ask.job, ask))
        for queue in self._queues.values():
            heapq.heapify(queue)
        self._used = defaultdict(float, used)

    def __iter__(self) -> "FairOrder":
        return self

    def __next__(self) -> Ask:
        queues = [queue for queue in self._queues.values() if queue]
        if not queues:
            raise StopIteration
        return heapq.heappop(min(queues, key=self._rank))[-1]

    def charge(self, ask: Ask) -> None:
        """Count the device time of a job that comes to run, so that its owner's next one yields to others."""
        self._used[ask.owner] += ask.count * in_advance(ask.seconds)

    def _rank(self, queue: list[tuple[int, int, int, Ask]]) -> tuple[int, int, float, int]:
        place, priority, job, ask = queue[0]
        return place, priority, self._used[ask.owner], job


def plan(state: State, *, prefer: int | None = None) -> Plan:
    """Return what starts now and why the rest waits; of equal devices a job takes ``prefer``."""
    order, made = FairOrder(state.asks, state.used), Plan()
    slots = list(state.slots)
    free = {slot.device: slot for slot in slots if not slot.busy and not slot.closed}
    running = Counter(state.running)
    for ask in order:
        limit = state.limits.get(ask.owner)
        if limit is not None and running[ask.owner] >= limit:
            made.standings[ask.job] = Standing(Why.LIMIT, detail=str(limit))
            continue
        if (obstacle := _obstacle(ask, slots, state.now)) is not None:
            made.standings[ask.job] = obstacle
            continue
        order.charge(ask)
        made.positions[ask.job] = len(made.positions) + 1
        allowed = [slot for slot in free.values() if _may_take(ask, slot, made, state)]
        if devices := choose(ask, allowed, now=state.now, prefer=prefer):
            made.starts[ask.job] = devices
            running[ask.owner] += 1
            for device in devices:
                del free[device]
            continue
        made.standings[ask.job] = Standing(Why.TURN)
        if ask.count > 1 and state.now >= ask.queued_at + timedelta(seconds=state.patience):
            _keep_free(ask, slots, made)
    return made


def choose(ask: Ask, slots: Iterable[Slot], *, now: datetime, prefer: int | None = None) -> tuple[int, ...]:
    """Return the devices of one host on which a job would start, or nothing when too few suit."""
    groups: list[list[Slot]] = [group for group in _groups(ask, slots, now) if len(group) >= ask.count]
    if not groups:
        return ()

    def fitness(group: list[Slot]) -> tuple[bool, bool, int, str]:
        holds_prefer = any(slot.device == prefer for slot in group)
        return group[0].host not in ask.homes, not holds_prefer, len(group), group[0].host

    best = min(groups, key=fitness)
    best.sort(key=lambda slot: (slot.device != prefer, slot.device))
    return tuple(slot.device for slot in best[: ask.count])


def suits(ask: Ask, slot: Slot) -> bool:
    """Tell whether a device is of the kind that a job asks for."""
    match ask.request:
        case Request.NAMED:
            return slot.device == ask.device
        case Request.LABEL:
            return ask.label in slot.labels
        case Request.ANY:
            return True
    return slot.kind == ask.request


def _groups(ask: Ask, slots: Iterable[Slot], now: datetime) -> list[list[Slot]]:
    """Return the suitable devices that can serve one job together: of one host and one kind."""
    waits = ask.prefers_homes_until is not None and now < ask.prefers_homes_until
    groups: dict[tuple[str, str], list[Slot]] = defaultdict(list)
    for slot in slots:
        if suits(ask, slot) and _has_room(ask, slot) and (not waits or slot.host in ask.homes):
            groups[slot.host, slot.kind].append(slot)
    return list(groups.values())


def _has_room(ask: Ask, slot: Slot) -> bool:
    return slot.room is None or ask.disk <= slot.room


def _obstacle(ask: Ask, slots: list[Slot], now: datetime) -> Standing | None:
    """Return what keeps a job from starting even if every device were free."""

    def enough(found: Iterable[Slot]) -> bool:
        counts = Counter((slot.host, slot.kind) for slot in found)
        return max(counts.values(), default=0) >= ask.count

    suitable = [slot for slot in slots if suits(ask, slot)]
    if not enough(suitable):
        return Standing(Why.NO_DEVICE)
    usable = [slot for slot in suitable if not slot.closed]
    if not enough(usable):
        return Standing(Why.CLOSED, detail=next(slot.closed for slot in suitable if slot.closed))
    if not enough(slot for slot in usable if _has_room(ask, slot)):
        return Standing(Why.DISK, detail=max(usable, key=lambda slot: slot.room or 0).host)
    waits = ask.prefers_homes_until is not None and now < ask.prefers_homes_until
    if waits and not enough(slot for slot in usable if slot.host in ask.homes):
        return Standing(Why.HOME, detail=", ".join(sorted(ask.homes)))
    return None


def _may_take(ask: Ask, slot: Slot, made: Plan, state: State) -> bool:
    """Tell whether a job may use a device that may be kept free for another: only if it is done before that starts."""
    if slot.device not in made.kept_free:
        return True
    start = _start_of(made.kept_free, made.kept_free[slot.device], state.slots, state.now)
    return ask.seconds is not None and start is not None and state.now + timedelta(seconds=ask.seconds) <= start


def _start_of(kept: Mapping[int, int], job: int, slots: Iterable[Slot], now: datetime) -> datetime | None:
    """Return when all devices kept for a job are expected to be free, where that is known."""
    ends = [slot.free_at if slot.busy else now for slot in slots if kept.get(slot.device) == job]
    return None if None in ends else max(end for end in ends if end is not None)


def _keep_free(ask: Ask, slots: Iterable[Slot], made: Plan) -> None:
    """Keep those devices for a job of several that are together free soonest."""
    open_slots = [slot for slot in slots if not slot.closed and slot.device not in made.kept_free]
    latest = datetime.max.replace(tzinfo=ask.queued_at.tzinfo)

    def soonest(slot: Slot) -> tuple[bool, datetime, int]:
        return slot.busy, slot.free_at or latest, slot.device

    groups = [sorted(group, key=soonest)[: ask.count] for group in _groups(ask, open_slots, latest)]
    groups = [group for group in groups if len(group) == ask.count]
    if groups:
        best = min(groups, key=lambda group: [soonest(slot) for slot in reversed(group)])
        made.kept_free |= {slot.device: ask.job for slot in best}
