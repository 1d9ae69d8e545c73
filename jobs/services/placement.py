"""Which waiting job starts now, on which devices, and why the others wait. Knows no database.

Workers that claim, the pages' reasons, the expected starts and the simulation of whole nights all use ``plan``.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
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
    limits: Mapping[int | None, int | None] = field(default_factory=dict)  # running jobs by owner, others under None
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
        self._heads = [self._head(owner) for owner in self._queues]
        heapq.heapify(self._heads)

    def __iter__(self) -> Iterator[Ask]:
        """Yield each ask; its owner's next one takes its place when the caller had the chance to charge it."""
        while self._heads:
            owner = self._heads[0][-1]
            yield heapq.heappop(self._queues[owner])[-1]
            if self._queues[owner]:
                heapq.heapreplace(self._heads, self._head(owner))
            else:
                heapq.heappop(self._heads)

    def charge(self, ask: Ask) -> None:
        """Count the device time of a job that comes to run, so that its owner's next one yields to others."""
        self._used[ask.owner] += ask.count * in_advance(ask.seconds)

    def _head(self, owner: int) -> tuple[int, int, float, int, int]:
        place, priority, job, _ = self._queues[owner][0]
        return place, priority, self._used[owner], job, owner


def plan(state: State, *, prefer: int | None = None, starts_only: bool = False) -> Plan:
    """Return what starts now and why the rest waits; of equal devices a job takes ``prefer``.

    ``starts_only`` ends as soon as no device is free: positions and standings are not complete then.
    """
    order, made, board = FairOrder(state.asks, state.used), Plan(), Board(state.slots, state.now)
    running = Counter(state.running)
    for ask in order:
        if starts_only and not board.free:
            break
        limit = state.limits.get(ask.owner, state.limits.get(None))
        if limit is not None and running[ask.owner] >= limit:
            made.standings[ask.job] = Standing(Why.LIMIT, detail=str(limit))
            continue
        if (obstacle := board.obstacle(ask)) is not None:
            made.standings[ask.job] = obstacle
            continue
        order.charge(ask)
        made.positions[ask.job] = len(made.positions) + 1
        if devices := choose(ask, board.allowed(ask), now=state.now, prefer=prefer):
            made.starts[ask.job] = devices
            running[ask.owner] += 1
            board.take(ask, devices)
            continue
        made.standings[ask.job] = Standing(Why.TURN)
        if ask.count > 1 and state.now >= ask.queued_at + timedelta(seconds=state.patience):
            board.keep_free(ask)
    made.kept_free = board.kept_for
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
    waits = _waits_for_home(ask, now)
    groups: dict[tuple[str, str], list[Slot]] = defaultdict(list)
    for slot in slots:
        if suits(ask, slot) and _has_room(ask, slot) and (not waits or slot.host in ask.homes):
            groups[slot.host, slot.kind].append(slot)
    return list(groups.values())


def _has_room(ask: Ask, slot: Slot) -> bool:
    return slot.room is None or ask.disk <= slot.room


def _enough(ask: Ask, slots: Iterable[Slot]) -> bool:
    counts = Counter((slot.host, slot.kind) for slot in slots)
    return max(counts.values(), default=0) >= ask.count


def _waits_for_home(ask: Ask, now: datetime) -> bool:
    return ask.prefers_homes_until is not None and now < ask.prefers_homes_until


class Board:
    """The devices while a plan is made: which are free, which are kept, and what room is left."""

    def __init__(self, slots: Iterable[Slot], now: datetime) -> None:
        self.now = now
        self.slots = list(slots)
        self.free = {slot.device: slot for slot in self.slots if not slot.busy and not slot.closed}
        self.kept_for: dict[int, int] = {}  # job by device
        self._starts: dict[int, datetime | None] = {}  # when all that is kept is expected to be free, by job
        self._ends = {slot.device: slot.free_at for slot in self.slots}
        self._spoken_for: Counter[str] = Counter()  # bytes by host
        self._usable: dict[tuple[object, ...], list[Slot] | Standing] = {}

    def obstacle(self, ask: Ask) -> Standing | None:
        """Return what keeps a job from starting even if every device were free."""
        usable = self._usable_by(ask)
        if isinstance(usable, Standing):
            return usable
        if ask.disk and not _enough(ask, (slot for slot in usable if _has_room(ask, slot))):
            return Standing(Why.DISK, detail=max(usable, key=lambda slot: slot.room or 0).host)
        if _waits_for_home(ask, self.now) and not _enough(ask, (slot for slot in usable if slot.host in ask.homes)):
            return Standing(Why.HOME, detail=", ".join(sorted(ask.homes)))
        return None

    def allowed(self, ask: Ask) -> list[Slot]:
        """Return the free devices that a job may use: on a kept one it must be done before that is wanted."""
        return [slot for slot in self.free.values() if self._room_left(ask, slot) and self._done_in_time(ask, slot)]

    def take(self, ask: Ask, devices: tuple[int, ...]) -> None:
        """Give devices to a job."""
        taken = [self.free.pop(device) for device in devices]
        self._spoken_for[taken[0].host] += ask.disk
        end = None if ask.seconds is None else self.now + timedelta(seconds=ask.seconds)
        self._ends |= dict.fromkeys(devices, end)

    def keep_free(self, ask: Ask) -> None:
        """Keep those devices for a job of several that are together free soonest."""
        latest = datetime.max.replace(tzinfo=self.now.tzinfo)

        def soonest(slot: Slot) -> tuple[bool, datetime, int]:
            return slot.device not in self.free, self._ends[slot.device] or latest, slot.device

        open_slots = [slot for slot in self.slots if not slot.closed and slot.device not in self.kept_for]
        groups = [sorted(group, key=soonest)[: ask.count] for group in _groups(ask, open_slots, self.now)]
        groups = [group for group in groups if len(group) == ask.count]
        if groups:
            best = min(groups, key=lambda group: [soonest(slot) for slot in reversed(group)])
            self.kept_for |= {slot.device: ask.job for slot in best}
            self._starts[ask.job] = self._all_free(best)

    def _usable_by(self, ask: Ask) -> list[Slot] | Standing:
        wish = (ask.request, ask.device, ask.label, ask.count)
        if wish not in self._usable:
            suitable = [slot for slot in self.slots if suits(ask, slot)]
            self._usable[wish] = usable = [slot for slot in suitable if not slot.closed]
            if not _enough(ask, suitable):
                self._usable[wish] = Standing(Why.NO_DEVICE)
            elif not _enough(ask, usable):
                self._usable[wish] = Standing(Why.CLOSED, detail=next(slot.closed for slot in suitable if slot.closed))
        return self._usable[wish]

    def _room_left(self, ask: Ask, slot: Slot) -> bool:
        return slot.room is None or ask.disk <= slot.room - self._spoken_for[slot.host]

    def _done_in_time(self, ask: Ask, slot: Slot) -> bool:
        if slot.device not in self.kept_for:
            return True
        start = self._starts[self.kept_for[slot.device]]
        return ask.seconds is not None and start is not None and self.now + timedelta(seconds=ask.seconds) <= start

    def _all_free(self, slots: Iterable[Slot]) -> datetime | None:
        """Return when all are expected to be free, where that is known."""
        ends = [self.now if slot.device in self.free else self._ends[slot.device] for slot in slots]
        return None if None in ends else max(end for end in ends if end is not None)
