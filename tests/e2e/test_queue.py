"""Jobs on the real stack: real broker, real janitor, real worker, a trainer that is a real process."""

import os
import shutil
import signal
import time

import psutil
import pytest

from jobs.models import Attempt, Job, LogChunk
from jobs.services.lifecycle import request_cancel
from jobs.services.reasons import waiting_reasons
from tests.e2e.live_stack import asked, gone, wait_for, wait_for_status, wait_for_step
from tests.jobs.rows import person

pytestmark = pytest.mark.e2e


def log_of(job):
    return b"".join(chunk.content for chunk in LogChunk.objects.filter(job=job).order_by("offset")).decode()


def test_a_job_runs_and_its_log_metrics_samples_and_result_come_back(live):
    job = asked(steps=5)
    wait_for_status(job, Job.Status.COMPLETED)
    assert log_of(job).splitlines()[-1] == "step 5/5 loss 0.2000"
    assert list(job.metrics.values_list("step", "values")) == [(n, {"loss": 1 / n}) for n in range(1, 6)]
    assert list(job.samples.values_list("step", "index", "answer")) == [(n, 0, "4") for n in range(1, 6)]
    assert (job.step, job.total_steps, job.last_values, job.result["exit_code"]) == (5, 5, {"loss": 0.2}, 0)
    assert {"model/config.json", "result.json", "log.txt"} <= set(job.artifacts.values_list("path", flat=True))
    assert live.words(job).count("START") == 1


def test_submission_reaches_the_trainer_within_three_seconds(live):
    job = asked(steps=1)
    asked_at = time.time()
    wait_for_status(job, Job.Status.COMPLETED)
    started = next(at for word, _, at in live.ledger(job) if word == "START")
    print(f"submission to the trainer's start: {started - asked_at:.2f} s")
    assert started - asked_at < 3


def test_cancelling_a_running_job_ends_its_process_within_two_seconds(live):
    job = asked(steps=500)
    wait_for_step(live, job, 3)
    pid = live.ledger(job)[0][1]
    asker = person()
    request_cancel(job, by=asker)
    assert wait_for(lambda: gone(pid), 5) < 2
    wait_for_status(job, Job.Status.CANCELLED, 3)
    assert (job.attempts.get().outcome, job.checkpoint_step) == (Attempt.Outcome.CANCELLED, job.step)
    assert job.cause == f"cancelled by {asker.get_username()}; checkpoint at step {job.step}"


def test_a_trainer_that_ignores_sigterm_is_killed_after_the_grace(live):
    job = asked("ignore_sigterm", steps=500)
    wait_for_step(live, job, 3)
    pid = live.ledger(job)[0][1]
    request_cancel(job, by=person())
    assert 2 <= wait_for(lambda: gone(pid), 8) < 4
    wait_for_status(job, Job.Status.CANCELLED, 3)


@pytest.mark.parametrize(
    ("fault", "exit_code", "cause"),
    [
        ("exit1", 1, "ValueError: the loss is made of cheese"),
        ("segv", -signal.SIGSEGV, "the trainer was killed by SIGSEGV"),
    ],
)
def test_a_failed_job_says_why_and_the_worker_takes_the_next(live, fault, exit_code, cause):
    job, following = asked(fault), asked(steps=1)
    wait_for_status(job, Job.Status.FAILED)
    assert (job.cause, job.attempts.get().exit_code) == (cause, exit_code)
    wait_for_status(following, Job.Status.COMPLETED)


def test_a_killed_guard_takes_the_trainer_along_and_the_job_runs_again(live):
    job = asked(steps=20)
    wait_for_step(live, job, 2)
    guard = psutil.Process(live.ledger(job)[0][1]).ppid()
    os.kill(guard, signal.SIGKILL)
    wait_for(lambda: gone(live.ledger(job)[0][1]), 2)
    wait_for_status(job, Job.Status.COMPLETED)
    assert (live.words(job).count("START"), live.words(job).count("END"), job.requeues) == (2, 1, 1)


def test_what_leaves_the_process_group_is_ended_with_the_job(live):
    job = asked("grandchild", steps=500)
    wait_for_step(live, job, 2)
    trainer = psutil.Process(live.ledger(job)[0][1])
    [sleeper] = trainer.children()
    request_cancel(job, by=person())
    wait_for_status(job, Job.Status.CANCELLED)
    assert gone(sleeper.pid)


def test_a_killed_worker_takes_its_trainer_along_and_the_job_completes_after_a_restart(live):
    job = asked(steps=30)
    wait_for_step(live, job, 3)
    pid = live.ledger(job)[0][1]
    live.kill_worker()
    wait_for(lambda: gone(pid), 3)
    live.start_worker()
    wait_for_status(job, Job.Status.COMPLETED, 30)
    assert (live.words(job).count("START"), live.words(job).count("END"), job.requeues) == (2, 1, 1)
    assert [attempt.outcome for attempt in job.attempts.all()] == [Attempt.Outcome.LOST, Attempt.Outcome.COMPLETED]
    assert list(job.metrics.values_list("step", flat=True)) == list(range(1, 31))


def test_stopping_a_worker_puts_its_job_back_and_it_resumes_where_it_stopped(live):
    job = asked(steps=30)
    wait_for_step(live, job, 3)
    began = time.monotonic()
    live.worker.terminate()
    wait_for(lambda: not live.worker.is_running, 10)
    assert time.monotonic() - began < 5
    job.refresh_from_db()
    assert (job.status, job.resume, job.requeues) == (Job.Status.QUEUED, True, 0)
    assert waiting_reasons([job]) == {job.pk: "no worker is running"}
    stopped_at = job.checkpoint_step
    live.start_worker()
    wait_for_status(job, Job.Status.COMPLETED)
    steps = [word for word in live.words(job) if word.startswith("STEP")]
    assert steps == [f"STEP {n}" for n in range(1, 31)]
    assert [a.outcome for a in job.attempts.all()] == [Attempt.Outcome.DRAINED, Attempt.Outcome.COMPLETED]
    assert stopped_at >= 3
    assert log_of(job).count("$ ") == 2


def test_a_queued_job_survives_the_loss_of_all_of_the_brokers_data(live):
    first, second = asked(steps=30), asked(steps=1)
    wait_for_step(live, first, 1)
    os.kill(live.broker.pid, signal.SIGKILL)
    live.broker.finish(0)
    shutil.rmtree(live.home / "broker")
    third = asked(steps=1)
    (live.home / "broker").mkdir(mode=0o700)
    live.start_broker()
    for job in (first, second, third):
        wait_for_status(job, Job.Status.COMPLETED, 40)
        assert live.words(job).count("START") == 1


def test_a_dependent_job_starts_from_its_parents_weights(live):
    parent = asked(steps=5)
    child = asked(steps=1, start_from="job", depends_on=parent)
    assert waiting_reasons([child]) == {child.pk: f"waiting for job {parent.pk}"}
    wait_for_status(child, Job.Status.COMPLETED)
    command = child.attempts.get().command
    assert command[command.index("--init_path") + 1] == f"runs/{parent.pk}/model"
    assert live.ledger(child)[0][2] > live.ledger(parent)[-1][2]


def test_a_job_whose_parent_failed_waits_and_says_so(live):
    parent = asked("exit1", steps=1)
    child = asked(steps=1, depends_on=parent)
    wait_for_status(parent, Job.Status.FAILED)
    time.sleep(2)
    child.refresh_from_db()
    assert child.status == Job.Status.QUEUED
    assert waiting_reasons([child]) == {child.pk: f"job {parent.pk} failed"}
