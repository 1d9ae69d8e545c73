"""The broker goes away, forgets everything, or says everything twenty times."""

import shutil
import time

import pytest
import redis
from django.contrib.auth.models import User
from django.test import Client

from jobs.models import Job
from jobs.services.wake import publish
from jobs.stack.broker import socket_path
from tests.e2e.conftest import SECONDS, TRAINER
from tests.e2e.live_stack import LiveStack, asked, pretended_gpus, running, wait_for_status, wait_for_step
from tests.jobs.admin.conftest import ADD, posted

pytestmark = pytest.mark.e2e


@pytest.mark.fault(7)
def test_a_broker_that_is_killed_and_comes_back_disturbs_no_job_and_the_queue_drains(live, happened):
    job, following = asked(steps=30), asked(steps=1)
    wait_for_step(live, job, 3)
    for _ in range(2):
        live.kill_broker()
        time.sleep(0.5)
        live.start_broker()
    later = asked(steps=1)
    for each in (job, following, later):
        wait_for_status(each, Job.Status.COMPLETED, 40)
        assert live.counts(each) == (1, 1)
    happened("killed twice: each of three jobs ran once")


@pytest.mark.fault(8)
@pytest.mark.parametrize("loss", ["data removed", "FLUSHALL"])
def test_queued_jobs_survive_the_loss_of_all_of_the_brokers_data(live, loss, happened):
    first, second = asked(steps=20), asked(steps=1)
    wait_for_step(live, first, 1)
    if loss == "FLUSHALL":
        redis.Redis(unix_socket_path=str(socket_path(live.home))).flushall()
    else:
        live.kill_broker()
        shutil.rmtree(live.home / "broker")
        (live.home / "broker").mkdir(mode=0o700)
    third = asked(steps=1)
    if not live.broker.is_running:
        live.start_broker()
    for job in (first, second, third):
        wait_for_status(job, Job.Status.COMPLETED, 40)
        assert live.counts(job) == (1, 1)
    happened(f"{loss}: each of three jobs ran once")


@pytest.mark.fault(9)
def test_a_job_that_is_submitted_while_the_broker_is_down_is_queued_and_runs_later(live, happened):
    live.kill_broker()
    browser = Client()
    browser.force_login(User.objects.create_superuser("boss"))
    began = time.monotonic()
    response = browser.post(ADD, posted(max_steps="2", save_weight="ok"))
    answered_after = time.monotonic() - began
    job = Job.objects.get()
    assert (response.status_code, response.url) == (302, f"/admin/jobs/job/{job.pk}/change/")
    assert browser.get(response.url).status_code == 200
    assert (job.status, live.words(job)) == (Job.Status.QUEUED, [])
    live.start_broker()
    started_after = wait_for_status(job, Job.Status.COMPLETED, 60)
    happened(f"answered 302 in {answered_after:.1f} s, done {started_after:.0f} s after the broker was back")


@pytest.mark.fault(10)
def test_twenty_messages_start_one_job_once(live, happened):
    first = asked(steps=10)
    publish(*[live.queue] * 20)
    second = asked(steps=1)
    for job in (first, second):
        wait_for_status(job, Job.Status.COMPLETED)
        assert live.counts(job) == (1, 1)
    happened("each job ran once")


@pytest.mark.fault(11)
def test_a_job_that_outlasts_the_visibility_timeout_runs_once(database, short_lease, happened):
    quick = {"NIGHTSHIFT_TRAINER": str(TRAINER), "DJANGO_SETTINGS_MODULE": "tests.e2e.faults.quick_redelivery"}
    with running(LiveStack(database, SECONDS | quick, pretended_gpus(2))) as live:
        job = asked(steps=100)
        wait_for_status(job, Job.Status.COMPLETED, 30)
        assert live.counts(job) == (1, 1)
        assert job.attempts.count() == 1
    happened("10 s of job, redelivery after 3 s, two workers: one run")
