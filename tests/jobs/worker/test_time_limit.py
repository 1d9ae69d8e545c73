"""How long a job has run, against its time limit."""

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.models import Attempt, Job
from jobs.services.attempts import finish_attempt, requeue_attempt
from jobs.services.claim import claim_next
from jobs.services.lifecycle import resume_job
from jobs.services.sweep import take_over
from jobs.worker.time_limit import TimeLimit, seconds_used, spelled
from tests.jobs.rows import person, queued, worker

pytestmark = pytest.mark.django_db


class Clock:
    """Seconds that pass when a test says so."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def running(minutes):
    """Return an attempt that has just begun, of a job with that limit."""
    queued(time_limit=minutes)
    return claim_next(worker())


def earlier(attempt, *, seconds):
    """Let the attempt have begun so long ago."""
    attempt.started_at = timezone.now() - timedelta(seconds=seconds)
    attempt.save()


def warnings(attempt):
    return list(attempt.job.events.filter(kind="warned").order_by("id").values_list("detail", flat=True))


def test_the_limit_is_reached_when_its_last_second_has_passed():
    limit = TimeLimit(running(2), clock=(clock := Clock()))
    clock.now += 119.0
    assert not limit.is_reached()
    clock.now += 1.0
    assert limit.is_reached()


def test_a_job_without_a_limit_runs_for_ever_and_is_not_warned(tmp_path):
    attempt = running(None)
    limit = TimeLimit(attempt, clock=(clock := Clock()))
    clock.now += 1e9
    limit.warn(tmp_path / "log.txt")
    assert (limit.is_reached(), warnings(attempt)) == (False, [])


def test_what_earlier_attempts_ran_counts_and_the_wait_between_them_does_not():
    attempt = running(10)
    earlier(attempt, seconds=400)
    requeue_attempt(attempt, Attempt.Outcome.LOST, cause="gone")
    hour = timedelta(hours=1)
    Attempt.objects.update(started_at=attempt.started_at - hour, ended_at=attempt.ended_at - hour)
    limit = TimeLimit(claim_next(attempt.worker), clock=(clock := Clock()))
    clock.now += 190.0
    assert not limit.is_reached()  # 400 + 190 of 600 seconds
    clock.now += 11.0
    assert limit.is_reached()


def test_a_person_who_resumes_a_job_gives_it_the_whole_limit_again():
    attempt = running(10)
    earlier(attempt, seconds=600)
    finish_attempt(attempt, Attempt.Outcome.TIMED_OUT, result=None)
    assert 600 <= seconds_used(attempt.job, timezone.now()) < 610
    resume_job(attempt.job, by=person(), changes={"time_limit": 20})
    again = claim_next(attempt.worker)
    assert seconds_used(again.job, timezone.now()) < 10
    assert TimeLimit(again).minutes == 20


def test_a_worker_that_died_used_no_time_after_its_lease():
    attempt = running(60)
    earlier(attempt, seconds=3000)
    lease_end = timezone.now() - timedelta(seconds=2400)  # the janitor looks 40 minutes later
    Job.objects.update(lease_until=lease_end)
    taken = take_over(Job.objects.get())
    requeue_attempt(taken, Attempt.Outcome.LOST, cause="gone")
    assert seconds_used(attempt.job, timezone.now()) == pytest.approx(600, abs=1)


def test_each_warning_is_written_once_however_often_it_is_due(tmp_path):
    attempt = running(10)
    limit = TimeLimit(attempt, clock=(clock := Clock()))
    told = []
    for second in (470, 481, 500, 541, 590):
        clock.now = 1000.0 + second
        limit.warn(tmp_path / "log.txt")
        told.append(len(warnings(attempt)))
    assert told == [0, 1, 1, 2, 2]
    first, second = (f"{percent} % of the time limit of 10 min is used" for percent in (80, 90))
    assert warnings(attempt) == [first, second]
    assert (tmp_path / "log.txt").read_text() == f"\n[{first}]\n\n[{second}]\n"


def test_a_log_that_cannot_be_written_costs_no_warning(tmp_path):
    attempt = running(10)
    limit = TimeLimit(attempt, clock=(clock := Clock()))
    clock.now += 500.0
    limit.warn(tmp_path / "absent" / "log.txt")
    assert len(warnings(attempt)) == 1


def test_a_later_attempt_does_not_repeat_a_warning_but_one_after_a_resume_does(tmp_path):
    attempt = running(10)
    earlier(attempt, seconds=500)
    TimeLimit(attempt).warn(tmp_path / "log.txt")
    requeue_attempt(attempt, Attempt.Outcome.LOST, cause="gone")
    TimeLimit(second := claim_next(attempt.worker)).warn(tmp_path / "log.txt")
    assert len(warnings(attempt)) == 1
    finish_attempt(second, Attempt.Outcome.FAILED, result=None)
    resume_job(attempt.job, by=person())
    third = TimeLimit(claim_next(attempt.worker), clock=(clock := Clock()))
    clock.now += 490.0
    third.warn(tmp_path / "log.txt")
    assert len(warnings(attempt)) == 2


def test_a_limit_that_is_raised_while_the_job_runs_warns_anew(tmp_path):
    attempt = running(10)
    limit = TimeLimit(attempt, clock=(clock := Clock()))
    clock.now += 600.0
    limit.minutes = 20
    assert not limit.is_reached()
    clock.now += 361.0
    limit.warn(tmp_path / "log.txt")
    assert warnings(attempt) == ["80 % of the time limit of 20 min is used"]


@pytest.mark.parametrize(("minutes", "words"), [(480, "8 h"), (90, "1 h 30 min"), (5, "5 min"), (0, "0 min")])
def test_minutes_are_said_in_hours(minutes, words):
    assert spelled(minutes) == words


def test_an_attempt_that_still_runs_counts_up_to_now():
    attempt = running(10)
    earlier(attempt, seconds=90)
    assert seconds_used(attempt.job, attempt.started_at + timedelta(seconds=90)) == 90
