"""Order, eligibility, devices and the lease of a claim."""

from datetime import timedelta
from time import process_time

import pytest
from django.contrib.auth.models import Permission
from django.utils import timezone

from jobs.models import Attempt, Job, Limit, Metric
from jobs.services.attempts import Fenced, finish_attempt, requeue_attempt, start_attempt
from jobs.services.claim import claim_next
from jobs.services.lifecycle import hold_job
from jobs.services.schedule import queue_state
from tests.jobs.rows import person, queued, worker

pytestmark = pytest.mark.django_db


def claimed(by):
    """Claim a job, finish it, and return its number."""
    if (attempt := claim_next(by)) is None:
        return None
    finish_attempt(attempt, Attempt.Outcome.COMPLETED, result={})
    return attempt.job_id


def test_the_oldest_job_of_the_highest_priority_goes_first():
    person().user_permissions.add(Permission.objects.get(codename="high_priority"))
    first, second, urgent = queued(), queued(), queued(priority=Job.Priority.HIGH)
    cpu = worker()
    assert [claimed(cpu) for _ in range(4)] == [urgent.pk, first.pk, second.pk, None]


def test_the_person_who_used_the_devices_least_goes_first():
    ada_1, ada_2, bob = queued(), queued(), queued(owner="bob")
    cpu = worker()
    assert [claimed(cpu) for _ in range(3)] == [ada_1.pk, bob.pk, ada_2.pk]


def test_held_and_later_jobs_are_not_claimed():
    hold_job(queued(), by=person())
    queued(not_before=timezone.now() + timedelta(hours=1))
    due = queued(not_before=timezone.now() - timedelta(seconds=1))
    cpu = worker()
    assert [claimed(cpu), claimed(cpu)] == [due.pk, None]


@pytest.mark.parametrize(
    ("rule", "end", "starts"),
    [
        ("success", Job.Status.COMPLETED, True),
        ("success", Job.Status.FAILED, False),
        ("success", Job.Status.RUNNING, False),
        ("any_end", Job.Status.FAILED, True),
        ("any_end", Job.Status.RUNNING, False),
    ],
)
def test_a_dependency_is_met_by_its_rule(rule, end, starts):
    parent = queued()
    child = queued(depends_on=parent, dependency_rule=rule)
    Job.objects.filter(pk=parent.pk).update(status=end)
    assert claimed(worker()) == (child.pk if starts else None)


def test_each_device_takes_the_jobs_it_serves():
    cpu, gpu = worker(), worker("gpu0@here", kind="gpu", key="GPU-1")
    wants_gpu, wants_cpu = queued(device_request="gpu"), queued(device_request="cpu")
    named = queued(device_request="named", device=gpu.device)
    assert [claimed(cpu), claimed(cpu)] == [wants_cpu.pk, None]
    assert [claimed(gpu), claimed(gpu), claimed(gpu)] == [wants_gpu.pk, named.pk, None]


def test_a_claim_sets_the_lease_and_records_the_attempt():
    job = queued()
    attempt = claim_next(worker())
    job.refresh_from_db()
    assert (job.status, job.lease_token, job.worker.name) == (Job.Status.RUNNING, attempt.token, "cpu@here")
    assert 50 < (job.lease_until - timezone.now()).total_seconds() <= 60
    assert (attempt.number, attempt.command, attempt.outcome) == (1, job.command, Attempt.Outcome.RUNNING)
    assert attempt.command[attempt.command.index("--from_resume") + 1] == "0"


def test_a_second_claim_of_the_same_row_gets_nothing():
    job, cpu = queued(), worker()
    stale = Job.objects.get(pk=job.pk)
    assert start_attempt(job, cpu) is not None
    assert start_attempt(stale, cpu) is None


def test_a_lost_attempt_writes_nothing_over_its_successor():
    queued()
    cpu = worker()
    old = claim_next(cpu)
    requeue_attempt(old, Attempt.Outcome.LOST, cause="silent")
    new = claim_next(cpu)
    with pytest.raises(Fenced):
        finish_attempt(old, Attempt.Outcome.COMPLETED, result={"exit_code": 0})
    job = Job.objects.get()
    assert (job.status, job.lease_token, job.requeues) == (Job.Status.RUNNING, new.token, 1)


def test_a_second_attempt_resumes_and_forgets_steps_beyond_the_checkpoint():
    job, cpu = queued(), worker()
    old = claim_next(cpu)
    for step in (10, 20, 30):
        Metric.objects.create(job=job, step=step, time=timezone.now(), values={"loss": 1.0})
    Job.objects.filter(pk=job.pk).update(checkpoint_step=20, step=30)
    requeue_attempt(old, Attempt.Outcome.DRAINED, cause="the worker stopped")
    new = claim_next(cpu)
    assert (new.number, new.command[new.command.index("--from_resume") + 1]) == (2, "1")
    assert list(Metric.objects.values_list("step", flat=True)) == [10, 20]
    assert (new.job.step, new.job.requeues) == (20, 0)


def test_a_job_is_given_up_after_three_lost_attempts_and_their_restarts(settings):
    settings.NIGHTSHIFT_MAX_REQUEUES = 3
    queued()
    cpu = worker()
    for _ in range(4):
        requeue_attempt(claim_next(cpu), Attempt.Outcome.LOST, cause="silent")
    job = Job.objects.get()
    assert (job.status, job.cause) == (Job.Status.LOST, "silent; given up after 3 restarts")
    assert claim_next(cpu) is None


def test_everybody_s_limit_holds_for_whom_no_other_is_set():
    Limit.objects.create(max_running=1)
    Limit.objects.create(person=person("bob"), max_running=None)
    mine, _, _, his, also_his = (queued(owner=owner) for owner in ("ada", "ada", "ada", "bob", "bob"))
    workers = [worker(f"{n}@here", key=f"cpu:{n}") for n in range(4)]
    claimed = [claim_next(each) for each in workers]
    assert {attempt.job for attempt in claimed if attempt} == {mine, his, also_his}
    assert claimed.count(None) == 1


@pytest.mark.parametrize(
    "params",
    [{"hidden_size": "wide"}, {"num_attention_heads": 0}, {"init_path": 5}, {"max_steps": [1]}, {"hidden_size": [64]}],
)
def test_parameters_that_no_longer_make_sense_keep_no_other_job_from_starting(params):
    broken, other = queued(), queued()
    Job.objects.filter(pk=broken.pk).update(params=broken.params | params)
    assert [claim_next(worker(f"{n}@here", key=f"cpu:{n}")).job for n in range(2)] == [broken, other]


def test_a_training_type_that_no_longer_exists_keeps_no_other_job_from_starting():
    gone, other = queued(), queued()
    Job.objects.filter(pk=gone.pk).update(training_type="gone")
    assert [claim_next(worker(f"{n}@here", key=f"cpu:{n}")).job for n in range(2)] == [gone, other]


def test_ten_thousand_waiting_jobs_hold_a_claim_up_for_less_than_a_second():
    first = queued()
    same = {name: getattr(first, name) for name in ("training_type", "params", "command", "owner", "queued_at")}
    Job.objects.bulk_create(Job(**same) for _ in range(9_999))
    began = process_time()
    assert len(queue_state(timezone.now()).asks) == 10_000
    assert process_time() - began < 1.0  # 0.35 s on an idle core
