"""Which files of ended jobs a rule removes, and which it must not."""

import random
from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from jobs.models import Artifact, Event, Job, RetentionRule
from jobs.services.claim import claim_next
from jobs.services.lifecycle import NotPossible, resume_job
from jobs.services.needs import needed_jobs
from jobs.services.retention import apply, apply_due, metric_of, removals, set_keep_files
from tests.jobs.rows import SMALL, person, queued, worker

pytestmark = pytest.mark.django_db
NOW = timezone.now()
METRIC = "eval/sampled_accuracy"


def rule(name="old", **values):
    return RetentionRule.objects.create(
        name=name, **{"removes": "all", "keep_days": 14, "keep_last": 0, "keep_best": 0, "active": True} | values
    )


def ended(training_type="sft", *, days=30, status="completed", model=700, **values):
    """A job that ended so many days ago, with a checkpoint and, if it succeeded, weights of ``model`` bytes."""
    wishes = {name: values.pop(name) for name in ("owner", "params", "depends_on", "start_from") if name in values}
    job = queued(training_type, **wishes)
    if status == "completed":
        Artifact.objects.create(job=job, path="model/model.safetensors", size=model)
    Artifact.objects.create(job=job, path="log.txt", size=100)
    changes = {"checkpoint_step": 5, "checkpoint_host": "here", "disk_bytes": 3000} | values
    Job.objects.filter(pk=job.pk).update(status=status, finished_at=NOW - timedelta(days=days), **changes)
    job.refresh_from_db()
    return job


def removed(found):
    return {removal.job for removal in found}


def test_young_last_best_pinned_and_needed_jobs_are_kept():
    accuracy = {"eval_after": {METRIC: 0.5}}
    old = ended(days=30)
    young = ended(days=13)
    pinned = ended(days=40, keep_files=True)
    best = ended(days=50, result=accuracy)
    second = ended(days=51, result={"eval_after": {METRIC: 0.4}})
    parent = ended(days=60)
    child = queued(start_from="job", depends_on=parent)
    other = ended(days=70, owner="grace")
    found = removals(rule(keep_last=1, keep_best=1, metric=METRIC))
    assert removed(found) == {old, second}
    assert not {young, pinned, best, parent, child, other} & removed(found)


def test_the_last_are_counted_per_person_and_type():
    newest, older = ended(days=20), ended(days=21)
    of_grace, of_another_type = ended(days=99, owner="grace"), ended("pretrain", days=99)
    assert removed(removals(rule(keep_last=1))) == {older}
    assert {newest, of_grace, of_another_type} & removed(removals(rule("none", keep_last=0)))


def test_the_best_are_counted_per_type_and_data_set():
    other_data = SMALL | {"data_path": "../dataset/sft-mini.jsonl"}
    low = ended(result={"eval_after": {METRIC: 0.1}})
    high = ended(result={"eval_after": {METRIC: 0.2}})
    alone = ended(params=other_data, result={"eval_after": {METRIC: 0.0}})
    unmeasured = ended()
    assert removed(removals(rule(keep_best=1, metric=METRIC))) == {low, unmeasured}
    assert removed(removals(rule("loss", keep_best=1, metric=METRIC, lower_is_better=True))) == {high, unmeasured}
    assert removed(removals(rule("none", keep_best=1))) == {low, high, alone, unmeasured}


def test_of_equally_good_jobs_the_newest_is_best():
    older = ended(days=40, result={"eval_after": {METRIC: 0.5}})
    ended(days=30, result={"eval_after": {METRIC: 0.5}})
    assert removed(removals(rule(keep_best=1, metric=METRIC))) == {older}


@pytest.mark.parametrize(
    ("result", "last_values", "value"),
    [
        ({"eval_after": {METRIC: 0.3}, "last": {METRIC: 0.2}}, {METRIC: 0.1}, 0.3),
        ({"eval_after": None, "last": {METRIC: 0.2}}, {METRIC: 0.1}, 0.2),
        ({}, {METRIC: 1}, 1.0),
        ({"eval_after": {METRIC: None}}, {}, None),
        ({"eval_after": {METRIC: True}}, {METRIC: "0.9"}, None),
    ],
)
def test_a_metric_is_looked_for_in_the_last_evaluation_first(result, last_values, value):
    assert metric_of(Job(result=result, last_values=last_values), METRIC) == value


def test_sizes_are_those_of_checkpoint_and_weights():
    job = ended(model=700)  # of 3000 bytes 700 are weights, 100 the log, and the rest is the checkpoint
    [everything] = removals(rule())
    [checkpoints] = removals(rule("checkpoints", removes="checkpoints"))
    assert (everything.job, everything.size, everything.host) == (job, 2900, "here")
    assert (checkpoints.what, checkpoints.size) == ("checkpoints", 2200)


def test_a_rule_of_one_type_leaves_the_others_alone():
    ended("pretrain")
    assert removals(rule(training_type="sft")) == []


@pytest.mark.parametrize("status", ["held", "queued", "running"])
def test_a_job_without_an_end_is_never_removed(status):
    ended(status=status, days=99)
    assert removals(rule(keep_days=0)) == []


def test_a_rule_that_keeps_for_longer_than_dates_reach_removes_nothing():
    ended(days=40_000)
    assert removals(rule(keep_days=2_147_483_647)) == []


def test_a_parent_that_failed_may_be_resumed_and_then_needs_what_it_started_from():
    grandparent = ended()
    parent = ended(status="failed", depends_on=grandparent, start_from="job")
    child = queued(depends_on=parent)
    assert needed_jobs() == {child.pk: child.pk, parent.pk: child.pk, grandparent.pk: parent.pk}


def test_a_job_is_not_resumed_from_a_checkpoint_that_a_rule_removed_meanwhile():
    parent = ended(days=40)
    seen = ended(days=30, status="failed", depends_on=parent, start_from="job", checkpoint_step=5)
    apply(rule(), by=None)
    with pytest.raises(NotPossible, match="was removed meanwhile"):
        resume_job(seen, by=None)
    assert Job.objects.get(pk=seen.pk).status == "failed"
    with pytest.raises(ValidationError, match=f"the weights of job {parent.pk} were removed"):
        resume_job(Job.objects.get(pk=seen.pk), by=None)


def test_a_parent_that_succeeded_and_is_only_waited_for_is_not_needed():
    parent = ended()
    child = queued(depends_on=parent)
    assert needed_jobs() == {child.pk: child.pk}


def test_whatever_happened_nothing_that_is_needed_is_removed():
    total = 0
    for seed in range(12):
        chance = random.Random(seed)
        Job.objects.update(depends_on=None)
        Job.objects.all().delete()
        RetentionRule.objects.all().delete()
        jobs = []
        for _ in range(14):
            parent = chance.choice([None, *jobs])
            start = {"start_from": "job"} if parent and chance.random() < 0.6 else {}
            state = chance.choice(["held", "queued", "running", *3 * ["completed"], "failed", "cancelled", "lost"])
            jobs.append(ended(status=state, days=chance.randrange(60), depends_on=parent, **start))
        wanted = {job.pk for job in jobs if job.status in Job.UNFINISHED}
        for job in reversed(jobs):  # parents are older: each is judged after all its children
            parent, needs_it = job.depends_on, job.pk in wanted and job.status != "completed"
            if parent and needs_it and (job.start_from == "job" or parent.status != "completed"):
                wanted.add(parent.pk)
        kinds = {"removes": chance.choice(["checkpoints", "all"]), "keep_days": chance.randrange(30)}
        gone = {removal.job.pk for removal in apply(rule(keep_last=chance.randrange(2), **kinds), by=None)}
        assert not gone & wanted, f"seed {seed}"
        total += len(gone)
        assert all(job.is_finished for job in jobs if job.pk in gone)
    assert total > 12


def test_a_removal_is_written_down_and_happens_once():
    job = ended()
    ada = person("root")
    assert removed(apply(rule(), by=ada)) == {job}
    job.refresh_from_db()
    assert (job.files_removed, job.checkpoint_step, job.checkpoint_host) == ("all", None, "")
    assert list(job.artifacts.values_list("path", flat=True)) == ["log.txt"]
    event = Event.objects.get(kind="files_removed")
    assert (event.job, event.actor, event.detail) == (job, ada, "Checkpoints and weights, 0.0 MB (old)")
    assert apply(RetentionRule.objects.get(), by=ada) == []


def test_weights_outlive_a_rule_for_checkpoints_until_a_rule_for_all():
    job = ended()
    apply(rule("first", removes="checkpoints"), by=None)
    job.refresh_from_db()
    assert (job.files_removed, job.artifacts.count()) == ("checkpoints", 2)
    assert queued(start_from="job", depends_on=job).cancel_requested_at is None
    Job.objects.filter(status="queued").update(status="cancelled")
    apply(rule("second"), by=None)
    job.refresh_from_db()
    assert job.files_removed == "all"


def test_what_is_pinned_or_needed_after_the_dry_run_stays(monkeypatch):
    pinned, parent, gone = ended(), ended(), ended()
    made = rule()
    found = removals(made)
    assert removed(found) == {pinned, parent, gone}
    set_keep_files(pinned, True, by=person())
    queued(start_from="job", depends_on=parent)
    monkeypatch.setattr("jobs.services.retention.removals", lambda _: found)  # as another had found them before
    assert removed(apply(made, by=None)) == {gone}


def test_weights_that_were_removed_cannot_be_started_from():
    job = ended()
    apply(rule(), by=None)
    told = f"the weights of job {job.pk} were removed; train them again, or choose others"
    with pytest.raises(ValidationError) as refused:
        queued(start_from="job", depends_on=job)
    assert refused.value.message_dict == {"depends_on": [told]}
    with pytest.raises(ValidationError) as refused:
        queued(start_from="folder", params=SMALL | {"init_path": f"runs/{job.pk}/model"})
    assert refused.value.message_dict == {"init_path": [told]}
    assert Job.objects.count() == 1


def test_a_job_whose_checkpoint_was_removed_starts_over_and_says_so():
    job = ended(status="failed")
    job.attempts.create(number=1, token=Job.new_token(), started_at=NOW)
    apply(rule(removes="checkpoints"), by=None)
    job.refresh_from_db()
    resume_job(job, by=person())
    attempt = claim_next(worker())
    assert "--from_resume" not in attempt.command or attempt.command[attempt.command.index("--from_resume") + 1] == "0"
    assert Event.objects.get(kind="started_over").detail == f"the checkpoint was removed on {timezone.now():%Y-%m-%d}"
    job.refresh_from_db()
    assert (job.files_removed, job.files_removed_at) == ("", None)


def test_a_job_that_would_start_over_from_removed_weights_is_not_resumed():
    parent = ended()
    child = ended(status="failed", depends_on=parent, start_from="job")
    apply(rule(), by=None)
    child.refresh_from_db()
    with pytest.raises(ValidationError, match=f"the weights of job {parent.pk} were removed"):
        resume_job(child, by=person())
    child.refresh_from_db()
    assert child.status == "failed"


def test_pinning_is_written_down_and_too_late_after_a_removal():
    job = ended()
    set_keep_files(job, True, by=person())
    set_keep_files(job, True, by=person())
    assert Event.objects.get(kind="edited").detail == "keeps its files"
    made = rule()
    assert removals(made) == []
    set_keep_files(job, False, by=person())
    apply(made, by=None)
    with pytest.raises(NotPossible, match="were removed already"):
        set_keep_files(job, True, by=person())


def test_active_rules_are_applied_once_a_day():
    made, inactive = rule(), rule("inactive", active=False)
    ended()
    apply_due()
    assert Job.objects.exclude(files_removed="").count() == 1
    made.refresh_from_db()
    inactive.refresh_from_db()
    assert made.applied_at is not None
    assert inactive.applied_at is None
    ended()
    apply_due()
    assert Job.objects.exclude(files_removed="").count() == 1
    RetentionRule.objects.filter(pk=made.pk).update(applied_at=timezone.now() - timedelta(days=1))
    apply_due()
    assert Job.objects.exclude(files_removed="").count() == 2
