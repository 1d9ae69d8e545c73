"""What a submission freezes, and what it refuses."""

import time

import pytest
from django.core.exceptions import ValidationError

from jobs.models import Event, Job
from jobs.services.submission import Submission
from jobs.services.submit import config_for
from tests.jobs.rows import SMALL, person, queued, worker

pytestmark = pytest.mark.django_db


def refused(training_type="sft", **wishes):
    with pytest.raises(ValidationError) as caught:
        queued(training_type, **wishes)
    return caught.value.message_dict


def test_a_job_keeps_every_parameter_and_the_command_that_will_run():
    job = queued("grpo", params={})
    assert job.command[:6] == ["python", "-m", "trainers", "grpo", "--run_dir", f"runs/{job.pk}"]
    assert "--beta 0.02 --num_generations 8 --reasoning 1 --reward_model_path ../../internlm2-1_8b-reward" in " ".join(
        job.command
    )
    assert (job.params["beta"], job.params["seed"], job.title) == (0.02, 42, "GRPO")
    assert [(event.kind, event.actor.username) for event in job.events.all()] == [(Event.Kind.SUBMITTED, "ada")]


def test_a_cispo_job_shows_its_loss_in_its_title():
    assert queued("grpo", params={"loss_type": "cispo"}).title == "GRPO (CISPO)"


def test_the_same_submission_key_makes_one_job():
    first = queued(submission_key="once")
    again = queued(submission_key="once", params=SMALL | {"seed": 7})
    assert (again.pk, Job.objects.count()) == (first.pk, 1)


def test_each_wrong_parameter_stands_at_its_name():
    wrong = refused(params={"epochs": 0, "beta": 1.0})
    assert set(wrong) == {"epochs", "beta"}


def test_a_path_outside_the_allowed_folders_is_refused():
    assert "outside the allowed folders" in refused(params={"data_path": "/etc/passwd"})["data_path"][0]


def test_starting_from_a_job_takes_its_weights():
    parent = queued()
    child = queued(start_from="job", depends_on=parent)
    assert child.params["init_path"] == f"runs/{parent.pk}/model"
    assert f"--init_path runs/{parent.pk}/model" in " ".join(child.command)


@pytest.mark.parametrize(
    ("wishes", "field"),
    [
        ({"start_from": "job"}, "depends_on"),
        ({"start_from": "folder"}, "init_path"),
        ({"params": {"init_path": "../out"}}, "init_path"),
        ({"device_request": "named"}, "device"),
    ],
)
def test_a_wish_that_lacks_its_object_is_refused(wishes, field):
    assert list(refused(**wishes)) == [field]


def test_weights_of_a_job_need_its_success():
    assert list(refused(start_from="job", depends_on=queued(), dependency_rule="any_end")) == ["dependency_rule"]


def test_an_unknown_type_is_refused():
    assert list(refused("ppo9")) == ["training_type"]


def test_the_preview_saves_nothing():
    config = config_for(Submission(training_type="sft", params=SMALL, owner=person()))
    assert (config.max_steps, Job.objects.count()) == (3, 0)


def test_a_held_submission_waits():
    assert queued(hold=True).status == Job.Status.HELD


@pytest.mark.django_db(transaction=True)
def test_a_broker_that_is_away_neither_stops_nor_delays_a_submission():
    worker()  # alive and idle, so that a wake-up is tried; no broker listens in this test
    began = time.monotonic()
    assert queued().status == Job.Status.QUEUED
    assert time.monotonic() - began < 2
