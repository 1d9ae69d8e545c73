"""Play the queue forward: what would start when, were every job to take as long as expected. Knows no database."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from jobs.models import Window
from jobs.services.fair_share import HALF_LIFE, in_advance
from jobs.services.placement import Ask, State, plan
from jobs.services.windows import closes_at, is_open, next_opening

MOMENTS = 400  # at which something changes, until the rehearsal ends


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """A job that waits, and what else than devices it waits for."""

    ask: Ask
    not_before: datetime | None = None
    window: Window | None = None
    parent: int | None = None  # the unfinished job after which it may start


@dataclass(frozen=True, kw_only=True)
class Run:
    """A job on its devices; ``ends`` is ``None`` where that is unknown."""

    job: int
    owner: int
    devices: tuple[int, ...]
    ends: datetime | None
    completes: bool = True  # not so where its window closes before


class Rehearsal:
    """The queue at one moment after the other."""

    def __init__(self, state: State, waiting: Iterable[Waiting], running: Iterable[Run]) -> None:
        self._state, self._now = state, state.now
        self._slots = {slot.device: slot for slot in state.slots}
        self._used = dict(state.used)
        self._waiting = {each.ask.job: each for each in waiting}
        self._running = list(running)
        self._finished: set[int] = set()
        self.starts: dict[int, datetime] = {}

    def play(self) -> dict[int, datetime]:
        """Return when each job would start; a job that waits for what nobody knows is left out."""
        for _ in range(MOMENTS):
            self._start()
            moment = self._next_moment()
            if moment is None or not self._waiting:
                break
            self._advance(moment)
        return self.starts

    def _start(self) -> None:
        asks = [each.ask for each in self._waiting.values() if self._may_start(each)]
        now = replace(
            self._state,
            now=self._now,
            asks=asks,
            slots=list(self._slots.values()),
            used=self._used,
            running=Counter(run.owner for run in self._running),
        )
        for job, devices in plan(now, starts_only=True).starts.items():
            waited = self._waiting.pop(job)
            self.starts[job] = self._now
            self._run(waited, devices)

    def _may_start(self, each: Waiting) -> bool:
        due = each.not_before is None or each.not_before <= self._now
        inside = each.window is None or is_open(each.window, self._now)
        return due and inside and (each.parent is None or each.parent in self._finished)

    def _run(self, waited: Waiting, devices: tuple[int, ...]) -> None:
        ask = waited.ask
        self._used[ask.owner] = self._used.get(ask.owner, 0.0) + ask.count * in_advance(ask.seconds)
        ends = None if ask.seconds is None else self._now + timedelta(seconds=ask.seconds)
        run = Run(job=ask.job, owner=ask.owner, devices=devices, ends=ends)
        self._running.append(until_closing(run, waited.window, self._now))
        self._occupy(devices, busy=True, free_at=self._running[-1].ends)

    def _next_moment(self) -> datetime | None:
        """Return when next something changes that may let a job start."""
        moments = [run.ends for run in self._running]
        for each in self._waiting.values():
            ask = each.ask
            moments += [each.not_before, ask.prefers_homes_until]
            moments += [next_opening(each.window, self._now)] if each.window else []
            moments += [ask.queued_at + timedelta(seconds=self._state.patience)] if ask.count > 1 else []
        return min((moment for moment in moments if moment is not None and moment > self._now), default=None)

    def _advance(self, moment: datetime) -> None:
        faded = 2 ** (-(moment - self._now).total_seconds() / HALF_LIFE)
        self._used = {owner: seconds * faded for owner, seconds in self._used.items()}
        self._now = moment
        for run in [run for run in self._running if run.ends is not None and run.ends <= moment]:
            self._running.remove(run)
            self._occupy(run.devices, busy=False, free_at=None)
            if run.completes:
                self._finished.add(run.job)

    def _occupy(self, devices: Iterable[int], *, busy: bool, free_at: datetime | None) -> None:
        for device in devices:
            if device in self._slots:
                self._slots[device] = replace(self._slots[device], busy=busy, free_at=free_at)


def until_closing(run: Run, window: Window | None, now: datetime) -> Run:
    """Return the run as its window lets it: one that gives its devices back when it closes ends then."""
    closes = closes_at(window, now) if window and window.at_end == Window.AtEnd.REQUEUE else None
    if closes is None or (run.ends is not None and run.ends <= closes):
        return run
    return replace(run, ends=closes, completes=False)
