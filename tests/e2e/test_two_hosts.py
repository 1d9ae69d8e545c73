"""Two hosts without a shared disk: what both make is in one place, and each can go on from the other's weights."""

import json
import time

import pytest

from jobs.models import Attempt, Device, Event, Job
from jobs.services.reasons import waiting_reasons
from tests.e2e.live_stack import asked, kill_tree, wait_for, wait_for_status, wait_for_step
from tests.e2e.two_hosts import TwoHosts, running_hosts

pytestmark = pytest.mark.e2e


@pytest.fixture
def hosts(database, short_lease, settings, tmp_path):
    settings.NIGHTSHIFT_CHECKPOINT_PATIENCE = 3.0
    with running_hosts(TwoHosts(database, tmp_path)) as hosts:
        yield hosts


def on(name, fault="ok", **wishes):
    """Queue a job for the one device of a host."""
    return asked(fault, device_request=Job.DeviceRequest.NAMED, device=Device.objects.get(host=name), **wishes)


def test_what_both_hosts_made_can_be_opened_in_the_admin(hosts):
    jobs = [on("a", steps=5), on("b", steps=5)]
    for job in jobs:
        wait_for_status(job, Job.Status.COMPLETED)
    assert (hosts.a.counts(jobs[0]), hosts.b.counts(jobs[1])) == ((1, 1), (1, 1))
    browser = hosts.signed_in()
    for job in jobs:
        assert "weights.txt" in browser.job(job)
        assert browser.job(job, "log/").splitlines()[-1] == "step 5/5 loss 0.2000"
        points = json.loads(browser.job(job, "live/"))["points"]
        assert [point["step"] for point in points] == [1, 2, 3, 4, 5]
        assert "2+2" in browser.job(job, "samples/?at=train:5")
        assert browser.file(job, "model/weights.txt") == f"weights of {job.pk}"
        assert json.loads(browser.file(job, "result.json"))["exit_code"] == 0


def test_a_job_on_one_host_starts_from_the_weights_that_another_host_made(hosts):
    parent = on("a")
    child = on("b", start_from="job", depends_on=parent)
    wait_for_status(child, Job.Status.COMPLETED, 30)
    assert hosts.b.counts(child) == (1, 1)
    fetched = hosts.b.home / "runs" / str(parent.pk) / "model"
    assert (fetched / "weights.txt").read_text() == f"weights of {parent.pk}"
    log = hosts.signed_in().job(child, "log/")
    assert f"[the weights of job {parent.pk} are not on this host: fetching 2 files" in log
    assert log.index(f"[the weights of job {parent.pk} are here") < log.index("step 1/5")


def test_a_job_whose_host_is_gone_waits_for_it_and_then_starts_over_elsewhere_and_says_so(hosts):
    hosts.b.worker.terminate()
    wait_for(lambda: not hosts.b.worker.is_running, 10)
    hosts.b.worker.finish(0)
    job = asked("saver", steps=20)
    wait_for_step(hosts.a, job, 12)
    wait_for(lambda: Job.objects.filter(pk=job.pk, checkpoint_step=10, checkpoint_host="a").exists(), 5)
    kill_tree(hosts.a.worker)
    hosts.b.start_worker()
    wait_for_status(job, Job.Status.QUEUED, 25)
    print(waiting_reasons([job])[job.pk])
    assert hosts.b.words(job) == []
    wait_for_status(job, Job.Status.COMPLETED, 30)
    told = "the checkpoint at step 10 is on a, not on b"
    assert job.events.get(kind=Event.Kind.STARTED_OVER).detail == told
    assert [word for word in hosts.b.words(job) if word.startswith("STEP")] == [f"STEP {n}" for n in range(1, 21)]
    assert [attempt.outcome for attempt in job.attempts.all()] == [Attempt.Outcome.LOST, Attempt.Outcome.COMPLETED]
    assert list(job.metrics.values_list("step", flat=True)) == list(range(1, 21))
    assert list(job.samples.values_list("step", flat=True).order_by("step")) == list(range(1, 21))
    log = hosts.signed_in().job(job, "log.txt")
    assert log.index("step 10/20") < log.index(f"[starts over: {told}]") < log.rindex("step 1/20 ")
    assert hosts.signed_in().file(job, "model/weights.txt") == f"weights of {job.pk}"


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)  # the database makes no difference to it
def test_a_training_that_ends_while_the_web_is_away_keeps_its_lease_and_brings_its_results_later(hosts):
    job = on("b", steps=10)
    wait_for_step(hosts.b, job, 3)
    hosts.kill_web()
    wait_for(lambda: hosts.b.counts(job) == (1, 1), 10)
    time.sleep(7)
    job.refresh_from_db()
    assert job.status == Job.Status.RUNNING
    hosts.web.start()
    wait_for_status(job, Job.Status.COMPLETED, 40)
    assert (job.attempts.count(), hosts.b.counts(job)) == (1, (1, 1))
    hosts.wait_for_web()
    browser = hosts.signed_in()
    assert browser.file(job, "model/weights.txt") == f"weights of {job.pk}"
    assert f"[{hosts.address} does not answer: " in browser.job(job, "log/")


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)  # the database makes no difference to it
def test_a_result_that_was_finished_on_a_host_that_died_is_brought_when_the_host_is_back(hosts):
    job = on("b", steps=10)
    wait_for_step(hosts.b, job, 3)
    hosts.kill_web()
    wait_for(lambda: hosts.b.counts(job) == (1, 1), 10)
    kill_tree(hosts.b.worker)
    wait_for_status(job, Job.Status.QUEUED, 25)
    hosts.web.start()
    hosts.b.start_worker()
    wait_for_status(job, Job.Status.COMPLETED, 40)
    assert hosts.b.counts(job) == (1, 1)
    assert [attempt.outcome for attempt in job.attempts.all()] == [Attempt.Outcome.LOST, Attempt.Outcome.COMPLETED]
    assert list(job.metrics.values_list("step", flat=True)) == list(range(1, 11))
    hosts.wait_for_web()
    assert hosts.signed_in().file(job, "model/weights.txt") == f"weights of {job.pk}"
