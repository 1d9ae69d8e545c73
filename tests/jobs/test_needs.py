"""What of other jobs an unfinished job needs."""

import pytest

from jobs.models import Job
from jobs.services.needs import named_runs, needed_jobs
from jobs.services.retention import removals
from tests.jobs.rows import queued
from tests.jobs.test_retention import ended, rule

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("name", ["teacher_path", "init_path", "tokenizer_path", "reward_model_path"])
def test_a_folder_that_an_unfinished_job_names_is_needed(name):
    source = ended()
    waiting = queued(hold=True)
    params = waiting.params | {name: f"runs/{source.pk}/model"}
    Job.objects.filter(pk=waiting.pk).update(params=params)
    assert needed_jobs() == {waiting.pk: waiting.pk, source.pk: waiting.pk}
    assert removals(rule()) == []


def test_runs_are_found_however_they_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("NIGHTSHIFT_HOME", str(tmp_path))
    link = tmp_path / "best"
    (tmp_path / "runs" / "7" / "model").mkdir(parents=True)
    link.symlink_to(tmp_path / "runs" / "7" / "model")
    params = {"a": "runs/12/model", "b": "/srv/ns/runs/3", "c": str(link), "d": "../out", "e": 5, "f": "runs/x/model"}
    assert named_runs(params) == {"a": 12, "b": 3, "c": 7}


def test_a_path_names_the_run_that_it_leads_to_and_a_number_that_no_job_has_names_none(tmp_path, monkeypatch):
    monkeypatch.setenv("NIGHTSHIFT_HOME", str(tmp_path))
    params = {
        "a": "runs/7/../8/model",
        "b": "runs/7/model/../../8/model",
        "c": "/srv/runs/2026/ns/runs/3/model",
        "d": f"runs/{'9' * 25}/model",
        "e": "runs/4/../../out",
    }
    assert named_runs(params) == {"a": 8, "b": 8, "c": 3, "e": 4}  # e: nothing is lost by keeping one too many
