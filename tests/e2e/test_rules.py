"""The rules of a shared box on the real stack: time limits, windows that close, devices that are drained."""

import time
from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.models import Attempt, Device, Job, Window
from jobs.services.drain import drain_device, resume_device
from jobs.services.lifecycle import release_job, request_cancel, request_yield, resume_job
from jobs.services.reasons import waiting_reasons
from tests.e2e.live_stack import asked, wait_for_status, wait_for_step
from tests.e2e.test_queue import log_of
from tests.jobs.rows import person

pytestmark = pytest.mark.e2e

Outcome = Attempt.Outcome


def ran_before(job, *, seconds):
    """Give the job an attempt that ran so long and then was lost."""
    now = timezone.now()
    times = {"started_at": now - timedelta(seconds=seconds), "ended_at": now}
    Attempt.objects.create(job=job, number=1, token=Job.new_token(), outcome=Outcome.LOST, **times)


def outcomes(job):
    return [attempt.outcome for attempt in job.attempts.order_by("number")]


def trained_once(live, job, steps):
    return [word for word in live.words(job) if word.startswith("STEP")] == [f"STEP {n}" for n in range(1, steps + 1)]


def test_a_job_at_its_time_limit_is_warned_saved_and_ended_and_resumes_with_a_longer_one(live):
    job = asked(steps=500, time_limit=1, hold=True)
    ran_before(job, seconds=57)
    release_job(job, by=person())
    wait_for_status(job, Job.Status.TIMED_OUT)
    assert job.cause == f"time limit of 1 min reached; checkpoint at step {job.checkpoint_step}"
    assert (job.advice, job.checkpoint_step) == ("resume it with a longer limit", job.step)
    told = job.events.filter(kind="warned").order_by("id").values_list("detail", flat=True)
    assert list(told) == [f"{percent} % of the time limit of 1 min is used" for percent in (80, 90)]
    assert "[90 % of the time limit of 1 min is used]" in log_of(job)
    attempt = job.attempts.get(number=2)
    assert 2 < (attempt.ended_at - attempt.started_at).total_seconds() < 6
    total = job.checkpoint_step + 5
    resume_job(job, by=person(), changes={"time_limit": 60, "max_steps": total})
    wait_for_status(job, Job.Status.COMPLETED)
    assert outcomes(job) == [Outcome.LOST, Outcome.TIMED_OUT, Outcome.COMPLETED]
    assert trained_once(live, job, total)


def test_a_job_whose_window_closes_goes_back_and_resumes_when_it_opens_again(live):
    opens = timezone.now() - timedelta(hours=6)
    night = Window.objects.create(
        name="night", time_zone="UTC", opens=opens.time(), closes=opens.time(), at_end="requeue"
    )
    job = asked(steps=40, window=night)
    wait_for_step(live, job, 3)
    closing = timezone.now() + timedelta(seconds=1)
    Window.objects.update(closes=closing.time())
    wait_for_status(job, Job.Status.QUEUED)
    assert job.attempts.get().ended_at >= closing
    assert job.cause == f"the window night closed; checkpoint at step {job.checkpoint_step}"
    assert waiting_reasons([job])[job.pk].startswith("window night opens ")
    opening = timezone.now() + timedelta(seconds=2)
    Window.objects.update(opens=opening.time(), closes=(opening + timedelta(hours=6)).time())
    wait_for_status(job, Job.Status.COMPLETED)
    assert job.attempts.get(number=2).started_at >= opening
    assert (outcomes(job), job.requeues) == ([Outcome.DRAINED, Outcome.COMPLETED], 0)
    assert trained_once(live, job, 40)


def test_a_job_on_a_device_that_is_drained_now_goes_back_and_resumes_when_it_is_given_back(live):
    job = asked(steps=20)
    wait_for_step(live, job, 3)
    device = Device.objects.get()
    drain_device(device, by=person("op"), reason="new fan", now=True)
    drained_in = wait_for_status(job, Job.Status.QUEUED)
    print(f"drain to freed device: {drained_in:.2f} s")
    assert job.cause == f"{device} was drained: new fan; checkpoint at step {job.checkpoint_step}"
    assert "drained" in waiting_reasons([job])[job.pk]
    time.sleep(2)  # two turns of the janitor
    assert live.words(job).count("START") == 1
    resume_device(device, by=person("op"))
    wait_for_status(job, Job.Status.COMPLETED)
    assert (outcomes(job), job.requeues) == ([Outcome.DRAINED, Outcome.COMPLETED], 0)
    assert trained_once(live, job, 20)


def test_a_cancel_that_comes_while_a_job_goes_back_to_the_queue_wins(live):
    job = asked("ignore_sigterm", steps=500)
    wait_for_step(live, job, 3)
    request_yield(job, "the window night closed")
    time.sleep(1)  # of the two seconds that it has to save
    request_cancel(job, by=person())
    wait_for_status(job, Job.Status.CANCELLED)
    assert (job.cause, outcomes(job)) == ("cancelled by ada; no checkpoint", [Outcome.CANCELLED])
