"""How long jobs are expected to run."""

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.models import Attempt, Job, Metric
from jobs.services.estimate import expected_seconds, remaining_seconds
from tests.jobs.rows import SMALL, queued, worker

pytestmark = pytest.mark.django_db

NOW = timezone.now()


def completed(seconds, by, *, steps=10, pace=None, start_up=2.0, ago=0.0, **wishes):
    """Record a job that ran so long; with a pace, it logged each step so many seconds after the one before."""
    job = queued(params=SMALL | {"max_steps": steps}, **wishes)
    ended = NOW - timedelta(seconds=ago)
    began = ended - timedelta(seconds=seconds)
    Attempt.objects.create(
        job=job, number=1, token=Job.new_token(), outcome="completed", started_at=began, ended_at=ended
    )
    done = {"status": "completed", "worker": by, "finished_at": ended, "step": steps, "total_steps": steps}
    Job.objects.filter(pk=job.pk).update(**done)
    if pace:
        log(job, began + timedelta(seconds=start_up), pace, steps)
    return job


def log(job, since, pace, steps):
    times = [(n, since + timedelta(seconds=n * pace)) for n in range(1, steps + 1)]
    Metric.objects.bulk_create([Metric(job=job, step=n, time=at, values={}) for n, at in times])


def waiting(steps=10, **wishes):
    return queued(params=SMALL | {"max_steps": steps}, **wishes)


def expected(job):
    job.refresh_from_db()
    return expected_seconds([job])[job.pk]


def running(by, *, started_ago, steps=10, **more):
    job = waiting(steps)
    began = NOW - timedelta(seconds=started_ago)
    Job.objects.filter(pk=job.pk).update(status="running", worker=by, started_at=began, total_steps=steps, **more)
    return job


def remaining(job):
    return remaining_seconds([job], NOW)[job.pk]


def test_of_a_job_like_no_other_nothing_is_known():
    completed(100, worker())
    assert expected(queued("grpo", params={})) is None


def test_it_is_the_median_of_the_last_five_of_its_kind():
    cpu = worker()
    for age, seconds in enumerate([10, 50, 20, 40, 30, 900, 900, 900]):
        completed(seconds, cpu, ago=60 * age)
    assert expected(waiting()) == 30


def test_those_of_the_device_that_is_asked_for_count_before_others():
    cpu, gpu = worker(), worker("gpu0@here", kind="gpu", key="GPU-1")
    completed(1000, cpu)
    completed(10, gpu)
    assert expected(waiting(device_request="gpu")) == 10
    assert expected(waiting(device_request="named", device=cpu.device)) == 1000


def test_another_number_of_steps_is_told_from_the_pace():
    completed(2 + 10 * 3 + 1, worker(), pace=3.0)  # a second to save at its end
    assert expected(waiting(100)) == pytest.approx(3 + 100 * 3)


def test_the_time_limit_ends_every_job():
    completed(1000, worker())
    assert expected(waiting(time_limit=5)) == 300


def test_of_a_job_that_resumes_only_what_is_left_counts():
    completed(1000, worker())
    job = waiting()
    Job.objects.filter(pk=job.pk).update(checkpoint_step=7, total_steps=10, resume=True)
    assert expected(job) == pytest.approx(300)


def test_a_job_that_ran_in_two_parts_took_both():
    job = completed(100, worker())
    began = NOW - timedelta(hours=9)
    attempt = {"job": job, "number": 2, "token": Job.new_token(), "outcome": "drained"}
    Attempt.objects.create(**attempt, started_at=began, ended_at=began + timedelta(seconds=50))
    assert expected(waiting()) == 150


def test_a_running_job_needs_what_others_took_less_what_it_ran():
    cpu = worker()
    completed(100, cpu)
    assert remaining(running(cpu, started_ago=30)) == pytest.approx(70)
    assert remaining(running(cpu, started_ago=300)) == 0


def test_the_pace_that_a_running_job_shows_counts_more_than_what_others_took():
    cpu = worker()
    completed(100, cpu)
    slow = running(cpu, started_ago=60)
    log(slow, NOW - timedelta(seconds=65), 20.0, 3)  # the third was 5 seconds ago
    assert remaining(slow) == pytest.approx(7 * 20 - 5)


def test_steps_of_an_earlier_attempt_tell_no_pace():
    job = running(worker(), started_ago=5)
    log(job, NOW - timedelta(hours=9), 20.0, 3)
    assert remaining(job) is None


def test_the_number_of_queries_does_not_grow(django_assert_num_queries):
    cpu = worker()
    completed(100, cpu)
    jobs, busy = [waiting() for _ in range(20)], [running(cpu, started_ago=n) for n in range(20)]
    with django_assert_num_queries(2):
        assert set(expected_seconds(jobs).values()) == {100}
    with django_assert_num_queries(3):
        assert len(remaining_seconds(busy, NOW)) == 20
