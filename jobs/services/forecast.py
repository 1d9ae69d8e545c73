"""When each waiting job is expected to start."""

from collections import defaultdict
from datetime import datetime, timedelta

from jobs.models import Device, Host, Job
from jobs.services.placement import State, Why, plan
from jobs.services.rehearsal import Rehearsal, Run, Waiting, until_closing
from jobs.services.schedule import asks, eligible_jobs, is_met, with_what_counts

LOOKED_AT = 200  # jobs that may start now, and as many of those that something else keeps
NEVER_KNOWN = (Why.NO_DEVICE, Why.CLOSED, Why.DISK)


def expected_starts(state: State) -> dict[int, datetime]:
    """Return when queued jobs are expected to start, by job id; those of which it cannot be known are left out.

    Only the first jobs of the queue are looked at, for what is far behind depends on what is still to come.
    """
    found = [*_ready(state), *_later(state.now)]
    return Rehearsal(state, found, _running(state)).play() if found else {}


def _ready(state: State) -> list[Waiting]:
    """Return the jobs that only devices or limits keep, in the plan's order."""
    made, by_job = plan(state), {ask.job: ask for ask in state.asks}
    others = [job for job, standing in made.standings.items() if standing.why not in NEVER_KNOWN]
    first = list(dict.fromkeys([*made.positions, *others]))[:LOOKED_AT]
    bound = Job.objects.filter(pk__in=first).exclude(window=None).select_related("window").only("window")
    windows = {job.pk: job.window for job in bound}
    return [Waiting(ask=by_job[job], window=windows.get(job)) for job in first]


def _later(now: datetime) -> list[Waiting]:
    """Return the jobs that a time, a window or an unfinished job keeps."""
    queued = Job.objects.filter(status=Job.Status.QUEUED, cancel_requested_at=None)
    kept = queued.exclude(pk__in=eligible_jobs(now).values("pk")).select_related("window").order_by("pk")
    found = with_what_counts(kept[:LOOKED_AT])
    hosts = {host.name: host for host in Host.objects.all()} if found else {}
    return [
        Waiting(
            ask=ask, not_before=job.not_before, window=job.window, parent=None if is_met(job) else job.depends_on_id
        )
        for job, ask in zip(found, asks(found, hosts), strict=True)
    ]


def _running(state: State) -> list[Run]:
    """Return what runs, by the devices that it holds; it ends in a moment at the soonest."""
    held: dict[int, list[int]] = defaultdict(list)
    for device, number in Device.objects.exclude(attempt=None).values_list("pk", "attempt__job_id"):
        held[number].append(device)
    ends = {slot.device: slot.free_at for slot in state.slots}
    soonest = state.now + timedelta(seconds=1)
    runs = []
    for job in Job.objects.filter(status=Job.Status.RUNNING).select_related("window").only("owner", "window"):
        end = ends.get(held[job.pk][0]) if held[job.pk] else None
        run = Run(job=job.pk, owner=job.owner_id, devices=tuple(held[job.pk]), ends=end and max(end, soonest))
        runs.append(until_closing(run, job.window, state.now))
    return runs
