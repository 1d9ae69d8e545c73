"""What the terminal shows of jobs, from literal rows."""

import zlib

import pytest
from django.contrib.auth.models import User

from jobs.models import Job, LogChunk
from jobs.stack.demo_batch import submit_demo
from jobs.stack.progress import Board, last_lines, log_tail, progress_lines, table


@pytest.fixture
def ada(db) -> User:
    return User.objects.create_superuser("ada")


def make_job(owner: User, **fields: object) -> Job:
    return Job.objects.create(**{"owner": owner, "training_type": "grpo", "title": "GRPO", **fields})


def test_a_running_job_shows_its_step_and_newest_values(ada):
    values = {"loss": 0.12345, "eval/greedy_accuracy": 0.578, "learning_rate": 1.0}
    job = make_job(ada, status="running", step=40, total_steps=250, last_values=values)
    assert progress_lines([job]) == [f"job {job.pk} GRPO   running      40/250  loss 0.1235  greedy accuracy 57.8%"]


def test_a_job_that_learns_from_rewards_shows_the_reward_and_not_the_loss(ada):
    job = make_job(ada, status="running", step=40, total_steps=250, last_values={"loss": 1e-9, "reward": 0.5})
    assert progress_lines([job]) == [f"job {job.pk} GRPO   running      40/250  reward 0.500"]


def test_a_waiting_job_shows_why_it_waits(ada):
    parent = make_job(ada, status="running")
    job = make_job(ada, status="queued", depends_on=parent)
    assert progress_lines([job]) == [f"job {job.pk} GRPO   waits: waiting for job {parent.pk}"]


def test_the_table_shows_reward_and_accuracy_before_and_after(ada):
    result = {
        "steps": 250,
        "total_steps": 250,
        "seconds": 64.4,
        "first": {"reward": 0.41},
        "last": {"reward": 0.8},
        "eval_before": {"eval/greedy_accuracy": 0.578},
        "eval_after": {"eval/greedy_accuracy": 0.964},
    }
    job = make_job(ada, status="completed", result=result)
    heading, _, row = table([job]).splitlines()
    assert heading.split("  ")[0] == "job"
    assert " ".join(row.split()) == f"{job.pk} GRPO completed 250/250 0.410 -> 0.800 57.8% -> 96.4% 64"


def test_a_job_without_a_result_still_has_its_row(ada):
    job = make_job(ada, status="failed", step=3, total_steps=250)
    assert table([job]).splitlines()[2].split() == [str(job.pk), "GRPO", "failed", "3/250", "-", "-", "-"]


def test_the_tail_of_a_log_joins_chunks_and_survives_broken_utf8(ada):
    job = make_job(ada, status="failed", cause="loss is not finite")
    offset = 0
    for data in (b"one\ntwo\nth", b"ree\n\xff four\n"):
        LogChunk.objects.create(job=job, offset=offset, length=len(data), data=zlib.compress(data))
        offset += len(data)
    assert last_lines(job, 2) == "three\n\ufffd four"
    assert log_tail(job).splitlines()[0] == f"job {job.pk} (GRPO) failed: loss is not finite"


def test_a_terminal_is_rewritten_in_place_and_a_pipe_gets_only_what_changed(ada):
    job = make_job(ada, status="running", step=1, total_steps=9)
    for live in (True, False):
        written: list[str] = []
        board = Board(written.append, live=live)
        job.step = 1
        board.show([job])
        board.show([job])
        assert len(written) == 1
        board.drawn_at = float("-inf")
        job.step = 2
        board.show([job])
        assert written[1].startswith("\x1b[1A\x1b[2K") == live
        assert "2/9" in written[1]


def test_the_demo_queues_a_grpo_job_that_starts_from_the_sft_jobs_weights(ada):
    sft, grpo = submit_demo(ada).jobs
    assert (sft.training_type, grpo.training_type) == ("sft", "grpo")
    assert grpo.depends_on == sft
    assert grpo.params["init_path"] == f"runs/{sft.pk}/model"
    assert sft.params["stop_at"].startswith("eval/sampled_accuracy>=")
    assert sft.batch == grpo.batch
