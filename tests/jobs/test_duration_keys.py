"""Which jobs are told to take equally long."""

import pytest

from jobs.models import Job
from jobs.services.duration_keys import WITHOUT_EFFECT, ZERO_OR_NOT, duration_keys
from jobs.services.lifecycle import resume_job
from tests.jobs.rows import SMALL, person, queued
from trainers.configs import TRAINING_TYPES


def keys(training_type="grpo", device_count=1, **params):
    return duration_keys(TRAINING_TYPES[training_type](**params), Job(device_count=device_count))


@pytest.mark.parametrize(
    "params", [{"seed": 7}, {"learning_rate": 0.5}, {"beta": 0.5}, {"save_dir": "../other"}, {"loss_type": "cispo"}]
)
def test_what_changes_no_duration_changes_no_key(params):
    assert keys(**params) == keys()


@pytest.mark.parametrize(
    "params",
    [{"batch_size": 3}, {"max_gen_len": 9}, {"num_generations": 3}, {"dtype": "float32"}, {"max_seq_len": 99},
     {"data_path": "../dataset/other.jsonl"}, {"beta": 0.0}, {"device_count": 2}, {"training_type": "spo"}],
)  # fmt: skip
def test_what_a_step_takes_longer_for_changes_both_keys(params):
    assert not set(keys(**params).values()) & set(keys().values())


@pytest.mark.parametrize("params", [{"epochs": 9}, {"max_steps": 9}])
def test_the_number_of_steps_changes_the_duration_and_not_the_pace(params):
    changed = keys(**params)
    assert changed["cost_key"] != keys()["cost_key"]
    assert changed["pace_key"] == keys()["pace_key"]


def test_each_name_that_is_left_out_is_a_parameter():
    known = {name for config in TRAINING_TYPES.values() for name in config.model_fields}
    assert known >= WITHOUT_EFFECT | ZERO_OR_NOT


@pytest.mark.django_db
def test_of_another_jobs_weights_the_size_counts_and_not_whose_they_are():
    parents = [queued(), queued(), queued(params=SMALL | {"hidden_size": 128})]
    children = [queued("grpo", params={}, start_from="job", depends_on=parent) for parent in parents]
    same, equal, larger = (child.cost_key for child in children)
    assert same == equal != larger
    grandchild, other = (queued("grpo", params={}, start_from="job", depends_on=children[n]) for n in (0, 1))
    assert grandchild.cost_key == other.cost_key == same


@pytest.mark.django_db
def test_more_steps_on_resume_make_another_key():
    job = queued()
    before = (job.cost_key, job.pace_key)
    Job.objects.filter(pk=job.pk).update(status="completed")
    resume_job(job, by=person(), changes={"max_steps": 9})
    job.refresh_from_db()
    assert (job.cost_key != before[0], job.pace_key) == (True, before[1])
    assert job.cost_key == queued(params=SMALL | {"max_steps": 9}).cost_key
