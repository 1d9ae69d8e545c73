"""The demo's verdict: it passes only when both jobs completed and the second learned enough."""

import io
import zlib

import pytest
from django.contrib.auth.models import User
from django.core.management.base import CommandError

from jobs.management.commands.demo import Command
from jobs.models import Job, LogChunk
from jobs.stack.demo_batch import submit_demo
from jobs.stack.progress import Board


@pytest.fixture
def command(db) -> Command:
    made = Command(stdout=io.StringIO(), no_color=True)
    made.board, made.stopping = Board(made.write, live=False), lambda: False
    return made


@pytest.fixture
def jobs(db) -> list[Job]:
    return submit_demo(User.objects.create_superuser("ada"))


def end(job: Job, accuracy: float | None = None, *, status: str = Job.Status.COMPLETED, cause: str = "") -> None:
    job.status, job.cause = status, cause
    job.result = {} if accuracy is None else {"eval_after": {"eval/greedy_accuracy": accuracy}}
    job.save()


def test_a_gain_of_twenty_points_passes(command, jobs):
    end(jobs[0], 0.40)
    end(jobs[1], 0.75)
    command.judge(jobs)
    assert "GRPO raised held-out accuracy by 35.0 points (required: 20)." in command.stdout.getvalue()


def test_too_small_a_gain_fails_though_both_jobs_completed(command, jobs):
    end(jobs[0], 0.40)
    end(jobs[1], 0.55)
    with pytest.raises(CommandError, match=r"rose by 15\.0 points; at least 20 points are required"):
        command.judge(jobs)


def test_a_gain_that_was_not_measured_fails(command, jobs):
    end(jobs[0])
    end(jobs[1], 0.9)
    with pytest.raises(CommandError, match="was not measured"):
        command.judge(jobs)


def test_a_failed_job_ends_the_demo_cancels_the_rest_and_shows_the_end_of_its_log(command, jobs):
    log = b"".join(b"line %d\n" % number for number in range(100))
    LogChunk.objects.create(job=jobs[0], offset=0, length=len(log), data=zlib.compress(log))
    end(jobs[0], status=Job.Status.FAILED, cause="loss is not finite")
    left = command.follow(jobs, lambda: None)
    assert [job.status for job in left] == ["failed", "cancelled"]
    with pytest.raises(CommandError, match="2 of 2 jobs did not complete"):
        command.judge(left)
    printed = command.stdout.getvalue()
    assert "failed: loss is not finite\nline 70\n" in printed
    assert "line 69\n" not in printed
