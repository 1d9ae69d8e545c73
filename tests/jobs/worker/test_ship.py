"""What of a run folder arrives in the database."""

import json

import pytest

from jobs.models import Attempt, LogChunk, Metric
from jobs.services.attempts import Fenced, requeue_attempt
from jobs.services.claim import claim_next
from jobs.worker.ship import Shipper
from tests.jobs.rows import queued, worker

pytestmark = pytest.mark.django_db


def add(path, *rows):
    with path.open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def metric(step, **values):
    return {"step": step, "total_steps": 20, "epoch": 1, "time": 1764530000.0, "values": values}


def test_the_lines_of_one_step_become_one_row(tmp_path):
    job = queued()
    shipper = Shipper(claim_next(worker()), tmp_path)
    add(tmp_path / "metrics.jsonl", metric(10, loss=0.5), metric(10, **{"eval/greedy_accuracy": 0.25}))
    assert shipper.ship()
    add(tmp_path / "metrics.jsonl", metric(10, late=1.0), metric(11, loss=0.4))
    assert shipper.ship()
    assert not shipper.ship()
    assert list(Metric.objects.values_list("step", "values")) == [
        (10, {"loss": 0.5, "eval/greedy_accuracy": 0.25, "late": 1.0}),
        (11, {"loss": 0.4}),
    ]
    job.refresh_from_db()
    assert (job.step, job.total_steps) == (11, 20)
    assert job.last_values == {"loss": 0.4, "eval/greedy_accuracy": 0.25, "late": 1.0}


def test_samples_are_numbered_within_their_step_and_kind(tmp_path):
    job = queued()
    shipper = Shipper(claim_next(worker()), tmp_path)
    add(tmp_path / "samples.jsonl", *({"step": 1, "kind": kind, "prompt": "p"} for kind in ("train", "train", "eval")))
    shipper.ship()
    add(tmp_path / "samples.jsonl", {"step": 1, "kind": "train", "prompt": "p", "answer": "4"})
    shipper.ship()
    found = list(job.samples.order_by("kind", "index").values_list("kind", "index", "answer"))
    assert found == [("eval", 0, None), ("train", 0, None), ("train", 1, None), ("train", 2, "4")]


def test_a_log_is_shipped_by_offset_and_continued_by_the_next_attempt(tmp_path):
    queued()
    cpu = worker()
    first = claim_next(cpu)
    (tmp_path / "log.txt").write_bytes(b"one\n")
    shipper = Shipper(first, tmp_path)
    shipper.ship()
    requeue_attempt(first, Attempt.Outcome.LOST, cause="gone")
    with (tmp_path / "log.txt").open("ab") as log:
        log.write(b"two\n")
    Shipper(claim_next(cpu), tmp_path).ship()
    assert [(chunk.offset, chunk.content) for chunk in LogChunk.objects.all()] == [(0, b"one\n"), (4, b"two\n")]


def test_another_hosts_log_goes_behind_what_is_there(tmp_path):
    job = queued()
    attempt = claim_next(worker())
    LogChunk.objects.create(job=job, offset=0, length=10, data=b"")
    shipper = Shipper(attempt, tmp_path)
    (tmp_path / "log.txt").write_bytes(b"here\n")
    shipper.ship()
    last = LogChunk.objects.order_by("offset").last()
    assert (last.offset, last.content) == (10, b"here\n")


def test_a_fenced_attempt_writes_nothing(tmp_path):
    queued()
    attempt = claim_next(worker())
    shipper = Shipper(attempt, tmp_path)
    requeue_attempt(attempt, Attempt.Outcome.LOST, cause="gone")
    add(tmp_path / "metrics.jsonl", metric(1, loss=1.0))
    (tmp_path / "log.txt").write_text("late")
    with pytest.raises(Fenced):
        shipper.ship()
    assert (Metric.objects.count(), LogChunk.objects.count()) == (0, 0)


def test_the_checkpoints_step_is_noted(tmp_path):
    job = queued()
    shipper = Shipper(claim_next(worker()), tmp_path)
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "meta.json").write_text('{"step": 40}')
    assert shipper.ship()
    assert not shipper.has_news()
    job.refresh_from_db()
    assert job.checkpoint_step == 40


def test_lines_that_are_no_metrics_are_left_out(tmp_path):
    queued()
    shipper = Shipper(claim_next(worker()), tmp_path)
    add(tmp_path / "metrics.jsonl", {"step": 1}, metric(2, loss="low"), metric(3, loss=0.5))
    shipper.ship()
    assert list(Metric.objects.values_list("step", flat=True)) == [3]
