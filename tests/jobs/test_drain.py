"""An operator takes a device out of the queue's hands, and gives it back."""

import pytest

from jobs.models import Attempt, Device, Event, Job
from jobs.services.attempts import requeue_attempt
from jobs.services.claim import claim_next
from jobs.services.drain import drain_device, resume_device
from jobs.services.lifecycle import NotPossible
from jobs.services.reasons import waiting_reasons
from tests.jobs.rows import person, queued, worker

pytestmark = pytest.mark.django_db


def test_nothing_starts_on_a_drained_device_until_it_is_given_back():
    serving, job = worker(), queued()
    drain_device(serving.device, by=person(), reason="new fan")
    assert claim_next(serving) is None
    assert "drained" in waiting_reasons([job])[job.pk]
    resume_device(serving.device, by=person())
    assert claim_next(serving).job == job


def test_who_drained_it_and_why_is_kept_while_it_lasts_and_in_the_history():
    device = worker().device
    drain_device(device, by=person("op"), reason="new fan")
    assert (device.drained_by.username, device.drain_reason, device.drained_at is not None) == ("op", "new fan", True)
    resume_device(device, by=person("ada"))
    assert (device.drained_by, device.drain_reason, device.drained_at) == (None, "", None)
    assert list(Event.objects.order_by("id").values_list("job", "kind", "actor__username", "detail")) == [
        (None, "device_drained", "op", "cpu:here (here): new fan"),
        (None, "device_resumed", "ada", "cpu:here (here)"),
    ]


def test_what_runs_there_runs_on_unless_it_shall_leave_now():
    serving, job = worker(), queued()
    claim_next(serving)
    drain_device(serving.device, by=person())
    job.refresh_from_db()
    assert job.yield_reason == ""
    drain_device(serving.device, by=person("op"), now=True)
    job.refresh_from_db()
    assert (job.status, job.yield_reason) == (Job.Status.RUNNING, "cpu:here (here) was drained")
    assert Event.objects.filter(kind="device_drained").count() == 1
    assert job.events.get(kind="yield_requested").actor == person("op")


def test_a_job_on_several_devices_leaves_all_of_them_when_one_is_drained():
    first = worker("gpu0@here", kind="gpu", key="GPU-0")
    second = worker("gpu1@here", kind="gpu", key="GPU-1")
    other = worker("gpu2@here", kind="gpu", key="GPU-2")
    pair, single = queued(device_count=2, device_request="gpu"), queued(device_request="gpu")
    attempt = claim_next(first)
    claim_next(other)
    drain_device(second.device, by=person(), reason="hot", now=True)
    pair.refresh_from_db()
    single.refresh_from_db()
    assert (pair.yield_reason, single.yield_reason) == ("GPU-1 (here) was drained: hot", "")
    requeue_attempt(attempt, Attempt.Outcome.DRAINED, cause="drained")
    assert not Device.objects.filter(pk__in=(first.device_id, second.device_id), attempt__isnull=False).exists()


def test_draining_twice_and_giving_back_what_is_not_drained_is_refused():
    device = worker().device
    with pytest.raises(NotPossible, match=r"cpu:here \(here\) is not drained"):
        resume_device(device, by=person())
    drain_device(device, by=person(), reason="first")
    with pytest.raises(NotPossible, match="already drained"):
        drain_device(device, by=person("op"), reason="second")
    device.refresh_from_db()
    assert (device.drain_reason, device.drained_by) == ("first", person())
