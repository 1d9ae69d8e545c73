"""The demo's verdict: it passes only when both jobs completed and the second learned enough."""

import io
import zlib

import pytest
from django.contrib.auth.models import User
from django.core.management.base import CommandError

from jobs.management.commands.demo import Command
from jobs.models import Job, LogChunk
from jobs.stack.demo_all import submit_all
from jobs.stack.demo_batch import Demo, submit_demo
from jobs.stack.progress import Board


@pytest.fixture
def command(db) -> Command:
    made = Command(stdout=io.StringIO(), no_color=True)
    made.board, made.stopping = Board(made.write, live=False), lambda: False
    return made


@pytest.fixture
def demo(db) -> Demo:
    return submit_demo(User.objects.create_superuser("ada"))


def end(job: Job, accuracy: float | None = None, *, status: str = Job.Status.COMPLETED, cause: str = "") -> None:
    job.status, job.cause = status, cause
    job.result = {} if accuracy is None else {"eval_after": {"eval/greedy_accuracy": accuracy}}
    job.save()


def test_a_gain_of_twenty_points_passes(command, demo):
    end(demo.jobs[0], 0.40)
    end(demo.jobs[1], 0.75)
    command.judge(demo.jobs, demo.claims)
    assert "GRPO raised held-out accuracy by 35.0 points (required: 20)." in command.stdout.getvalue()


def test_too_small_a_gain_fails_though_both_jobs_completed(command, demo):
    end(demo.jobs[0], 0.40)
    end(demo.jobs[1], 0.55)
    with pytest.raises(CommandError, match="1 of 1 jobs did not learn what is required"):
        command.judge(demo.jobs, demo.claims)
    assert "GRPO raised held-out accuracy by 15.0 points (required: 20)." in command.stdout.getvalue()


def test_a_gain_that_was_not_measured_fails(command, demo):
    end(demo.jobs[0])
    end(demo.jobs[1], 0.9)
    with pytest.raises(CommandError, match="did not learn"):
        command.judge(demo.jobs, demo.claims)
    assert "by an unmeasured number of points" in command.stdout.getvalue()


def test_a_failed_job_ends_the_demo_cancels_the_rest_and_shows_the_end_of_its_log(command, demo):
    log = b"".join(b"line %d\n" % number for number in range(100))
    LogChunk.objects.create(job=demo.jobs[0], offset=0, length=len(log), data=zlib.compress(log))
    end(demo.jobs[0], status=Job.Status.FAILED, cause="loss is not finite")
    left = command.follow(demo.jobs, lambda: None)
    assert [job.status for job in left] == ["failed", "cancelled"]
    with pytest.raises(CommandError, match="2 of 2 jobs did not complete"):
        command.judge(left, demo.claims)
    printed = command.stdout.getvalue()
    assert "failed: loss is not finite\nline 70\n" in printed
    assert "line 69\n" not in printed


def test_the_larger_demo_is_one_batch_whose_jobs_stand_on_each_other(command, demo):
    more = submit_all(demo.jobs[0].owner)
    sft, grpo, spo, reward, ppo, dpo, alone, taught = more.jobs
    assert len({job.batch for job in more.jobs}) == 1
    assert [job.depends_on for job in more.jobs] == [None, sft, sft, sft, reward, sft, None, grpo]
    assert [job.training_type for job in more.jobs[1:6]] == ["grpo", "spo", "reward", "ppo", "dpo"]
    assert ppo.params["init_path"] == f"runs/{sft.pk}/model"
    assert ppo.params["reward_model_path"] == f"runs/{reward.pk}/model"
    assert taught.params["teacher_path"] == f"runs/{grpo.pk}/model"
    same = ("data_path", "batch_size", "learning_rate", "max_steps", "seed")
    assert {name: alone.params[name] for name in same} == {name: taught.params[name] for name in same}
    assert alone.params["hidden_size"] == taught.params["student_hidden_size"]
    for job in more.jobs:
        end(job, 0.9 if job in (taught, grpo, spo, ppo, dpo) else 0.5)
    command.judge(more.jobs, more.claims)
    assert "PPO raised held-out accuracy by 40.0 points (required: 10)." in command.stdout.getvalue()
