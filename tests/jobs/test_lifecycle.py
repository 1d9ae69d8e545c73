"""What a person may do with a job, and what is refused once it no longer applies."""

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from jobs.models import Attempt, Event, Job, Limit
from jobs.services.attempts import finish_attempt, requeue_attempt, resumed, start_attempt
from jobs.services.claim import claim_next
from jobs.services.lifecycle import NotPossible, hold_job, release_job, request_cancel, request_yield, resume_job
from tests.jobs.rows import person, queued, worker

pytestmark = pytest.mark.django_db


def finished(outcome=Attempt.Outcome.COMPLETED):
    job = queued()
    finish_attempt(claim_next(worker()), outcome, result={"exit_code": 0})
    job.refresh_from_db()
    return job


def test_a_queued_job_is_cancelled_at_once():
    job = queued()
    request_cancel(job, by=person())
    assert (job.status, job.cause, job.cancel_requested_by.username) == (
        Job.Status.CANCELLED,
        "cancelled by ada",
        "ada",
    )


def test_a_running_job_is_asked_to_end_and_only_once():
    job = queued()
    claim_next(worker())
    request_cancel(job, by=person())
    assert (job.status, job.cancel_requested_at is not None) == (Job.Status.RUNNING, True)
    with pytest.raises(NotPossible, match=f"job {job.pk} is already being cancelled"):
        request_cancel(job, by=person())


def test_a_completed_job_cannot_be_cancelled_or_held():
    job = finished()
    with pytest.raises(NotPossible, match=f"job {job.pk} is already completed"):
        request_cancel(job, by=person())
    with pytest.raises(NotPossible):
        hold_job(job, by=person())


def test_a_held_job_is_released_into_the_queue():
    job = queued()
    hold_job(job, by=person())
    assert job.status == Job.Status.HELD
    release_job(job, by=person())
    assert job.status == Job.Status.QUEUED
    assert [event.kind for event in job.events.order_by("id")] == [
        Event.Kind.SUBMITTED,
        Event.Kind.HELD,
        Event.Kind.RELEASED,
    ]


@pytest.mark.parametrize("status", [status for status in Job.Status if status != Job.Status.QUEUED])
def test_only_a_queued_job_can_be_held(status):
    job = queued()
    Job.objects.filter(pk=job.pk).update(status=status)
    with pytest.raises(NotPossible, match=f"job {job.pk} is (already )?{status.label.lower()}"):
        hold_job(job, by=person())
    assert (job.status, job.events.filter(kind="held").exists()) == (status, False)


def test_a_held_job_is_not_claimed():
    job, serving = queued(), worker()
    hold_job(job, by=person())
    assert claim_next(serving) is None
    release_job(job, by=person())
    assert claim_next(serving).job == job


def test_a_job_that_yielded_can_be_held_before_it_starts_again():
    job = queued()
    attempt = claim_next(worker())
    assert (request_yield(job, "the window night closed"), request_yield(job, "another reason")) == (True, False)
    requeue_attempt(attempt, Attempt.Outcome.DRAINED, cause="the window night closed; checkpoint at step 3")
    hold_job(job, by=person())
    job.refresh_from_db()
    assert (job.status, job.yield_reason, job.requeues, job.resume) == (Job.Status.HELD, "", 0, True)


@pytest.mark.parametrize("status", [status for status in Job.Status if status != Job.Status.RUNNING])
def test_only_a_running_job_is_asked_to_yield(status):
    job = queued()
    Job.objects.filter(pk=job.pk).update(status=status)
    assert not request_yield(job, "the window night closed")


def test_ending_clears_the_lease_and_records_how():
    job = finished(Attempt.Outcome.FAILED)
    assert (job.status, job.lease_token, job.lease_until) == (Job.Status.FAILED, None, None)
    assert job.attempts.get().outcome == Attempt.Outcome.FAILED
    assert job.finished_at is not None


def test_resuming_continues_with_more_epochs_and_another_learning_rate():
    job = finished()
    resume_job(job, by=person(), changes={"epochs": 5, "learning_rate": 2e-5})
    assert (job.status, job.resume, job.params["epochs"]) == (Job.Status.QUEUED, True, 5)
    assert "--learning_rate 2e-05" in " ".join(job.command)
    attempt = claim_next(job.worker)
    assert attempt.command[attempt.command.index("--from_resume") + 1] == "1"


def test_resuming_refuses_another_model_and_a_running_job():
    job = finished()
    with pytest.raises(ValidationError) as caught:
        resume_job(job, by=person(), changes={"hidden_size": 128})
    assert list(caught.value.message_dict) == ["hidden_size"]
    resume_job(job, by=person(), changes={})
    with pytest.raises(NotPossible, match="queued"):
        resume_job(job, by=person(), changes={})


@pytest.mark.parametrize(("asked", "kept"), [({}, 60), ({"time_limit": 120}, 120), ({"time_limit": None}, None)])
def test_resuming_may_change_the_time_limit_and_forgets_the_advice(asked, kept):
    job = queued(time_limit=60)
    finish_attempt(claim_next(worker()), Attempt.Outcome.TIMED_OUT, advice="resume it with a longer limit", result=None)
    job.refresh_from_db()
    assert (job.status, job.advice) == (Job.Status.TIMED_OUT, "resume it with a longer limit")
    resume_job(job, by=person(), changes=asked)
    assert (job.time_limit, job.advice, "time_limit" in job.params) == (kept, "", False)


@pytest.mark.parametrize("minutes", [0, -5, 1.5, "60", 527_041])
def test_a_time_limit_that_is_no_number_of_minutes_is_refused(minutes):
    job = finished()
    with pytest.raises(ValidationError) as caught:
        resume_job(job, by=person(), changes={"time_limit": minutes})
    assert caught.value.message_dict == {"time_limit": ["whole minutes, from 1 to 527040, or none"]}


def test_a_command_without_the_flag_gets_it():
    assert resumed(["python", "--from_resume", "0", "--seed", "1"]) == ["python", "--from_resume", "1", "--seed", "1"]
    assert resumed(["python"]) == ["python", "--from_resume", "1"]


def test_a_job_that_comes_back_after_a_cancel_was_asked_is_cancelled():
    job = queued()
    attempt = claim_next(worker())
    request_cancel(job, by=person())
    requeue_attempt(attempt, Attempt.Outcome.DRAINED, cause="the worker was stopped")
    job.refresh_from_db()
    assert (job.status, job.attempts.get().outcome) == (Job.Status.CANCELLED, Attempt.Outcome.DRAINED)


def test_a_cancel_that_the_worker_did_not_see_before_the_limit_wins_over_it():
    job, asker = queued(), person()
    attempt = claim_next(worker())
    request_cancel(job, by=asker)
    finish_attempt(attempt, Attempt.Outcome.TIMED_OUT, cause="time limit of 8 h reached", result=None)
    job.refresh_from_db()
    assert (job.status, job.cause) == (Job.Status.CANCELLED, "cancelled by ada; time limit of 8 h reached")


def test_the_cause_of_a_cancelled_run_says_by_whom_and_where_it_can_continue():
    job, asker = queued(), person()
    attempt = claim_next(worker())
    request_cancel(job, by=asker)
    finish_attempt(attempt, Attempt.Outcome.CANCELLED, cause="checkpoint at step 40", result=None)
    job.refresh_from_db()
    assert job.cause == f"cancelled by {asker.get_username()}; checkpoint at step 40"


def test_resuming_counts_as_waiting_too():
    job = queued()
    finish_attempt(claim_next(worker()), Attempt.Outcome.FAILED, cause="it broke", result={})
    Limit.objects.create(person=None, max_queued=1)
    queued()
    with pytest.raises(ValidationError, match="limit of waiting jobs is 1"):
        resume_job(job, by=person())
    assert Job.objects.get(pk=job.pk).status == Job.Status.FAILED


def test_resuming_a_cancelled_job_clears_its_end_its_restarts_and_the_wish_to_cancel():
    job = queued()
    request_cancel(job, by=person())
    Job.objects.filter(pk=job.pk).update(requeues=3)
    resume_job(job, by=None)
    assert (job.finished_at, job.requeues, job.cancel_requested_at, job.cancel_requested_by) == (None, 0, None, None)
    assert claim_next(worker()).job == job


def test_a_job_that_shall_be_cancelled_does_not_start():
    job = queued()
    Job.objects.filter(pk=job.pk).update(cancel_requested_at=timezone.now())
    assert start_attempt(job, worker()) is None


def test_a_device_that_another_attempt_holds_starts_nothing_and_the_job_goes_on_waiting():
    queued()
    holder = claim_next(worker())
    job = queued()
    assert start_attempt(job, holder.worker) is None
    job.refresh_from_db()
    assert (job.status, job.attempts.count()) == (Job.Status.QUEUED, 0)


def test_a_reason_to_yield_is_cut_to_what_the_column_holds():
    queued()
    job = claim_next(worker()).job
    request_yield(job, "x" * 300)
    job.refresh_from_db()
    assert job.yield_reason == "x" * 200
