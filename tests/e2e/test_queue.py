"""Jobs on the real stack: real broker, real janitor, real worker, a trainer that is a real process."""

import time

import psutil
import pytest

from jobs.models import Job, LogChunk
from jobs.services.lifecycle import request_cancel
from jobs.services.reasons import waiting_reasons
from tests.e2e.live_stack import asked, gone, wait_for_status, wait_for_step
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


def test_what_leaves_the_process_group_is_ended_with_the_job(live):
    job = asked("grandchild", steps=500)
    wait_for_step(live, job, 2)
    trainer = psutil.Process(live.ledger(job)[0][1])
    [sleeper] = trainer.children()
    request_cancel(job, by=person())
    wait_for_status(job, Job.Status.CANCELLED)
    assert gone(sleeper.pid)


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
