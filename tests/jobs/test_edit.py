"""What of a waiting job can change, and what the history says of it."""

from datetime import UTC, datetime, time

import pytest
from django.contrib.auth.models import Permission
from django.core.exceptions import ValidationError

from jobs.models import Event, Job, Limit, Window
from jobs.services.claim import claim_next
from jobs.services.edit import edit_job
from jobs.services.lifecycle import NotPossible, hold_job
from jobs.services.submission import Submission
from tests.jobs.rows import SMALL, person, queued, worker

pytestmark = pytest.mark.django_db


def edit(job, *, by="ada", params=None, training_type="sft", **wishes):
    values = SMALL if params is None else params
    asked = Submission(training_type=training_type, params=values, owner=person(), **wishes)
    edit_job(job, asked, by=person(by))


def refused(job, **asked):
    before = Job.objects.filter(pk=job.pk).values().get()
    with pytest.raises(ValidationError) as caught:
        edit(job, **asked)
    assert Job.objects.filter(pk=job.pk).values().get() == before
    return caught.value.message_dict


def test_a_queued_job_takes_new_parameters_and_a_new_command():
    job = queued()
    first_key = job.cost_key
    edit(job, params=SMALL | {"max_steps": 9})
    assert (job.params["max_steps"], job.status) == (9, "queued")
    assert f"--run_dir runs/{job.pk} " in " ".join(job.command)
    assert "--max_steps 9" in " ".join(job.command)
    assert job.cost_key != first_key


def test_a_held_job_takes_new_wishes_and_stays_held():
    job, nights = queued(hold=True), Window.objects.create(name="nights", time_zone="UTC", opens=time(20))
    later = datetime(2030, 1, 1, 20, tzinfo=UTC)
    edit(job, name="late", window=nights, not_before=later, time_limit=60, device_count=2, priority=-1)
    assert (job.name, job.window, job.not_before, job.time_limit) == ("late", nights, later, 60)
    assert (job.device_count, job.priority, job.status) == (2, -1, "held")
    assert "--processes 2" in " ".join(job.command)


def test_the_event_says_who_changed_what_from_what_to_what():
    job = queued(name="mine", time_limit=30)
    edit(job, by="boss", name="mine", params=SMALL | {"epochs": 5})
    event = job.events.get(kind=Event.Kind.EDITED)
    assert (event.actor.username, event.detail) == ("boss", "time_limit 30 → none, epochs 2 → 5")
    assert job.owner.username == "ada"


def test_an_edit_that_changes_nothing_leaves_no_event():
    job = queued()
    edit(job)
    assert not job.events.filter(kind=Event.Kind.EDITED).exists()


def test_a_job_that_started_meanwhile_is_not_edited():
    job = queued()
    claim_next(worker())
    with pytest.raises(NotPossible, match=f"job {job.pk} is running"):
        edit(job, params=SMALL | {"max_steps": 9})
    job.refresh_from_db()
    assert job.params["max_steps"] == 3


def test_a_finished_job_is_not_edited():
    job = queued()
    Job.objects.filter(pk=job.pk).update(status="completed")
    with pytest.raises(NotPossible, match="already completed"):
        edit(job, name="other")


def test_wrong_parameters_and_wishes_stand_at_their_fields():
    assert set(refused(queued(), params={"epochs": 0})) == {"epochs"}
    assert set(refused(queued(), time_limit=0)) == {"time_limit"}


def test_another_type_is_another_job():
    assert list(refused(queued(), training_type="pretrain", params={})) == ["training_type"]


def test_a_job_never_waits_for_itself_directly_or_through_others():
    first = queued()
    second = queued(depends_on=first)
    third = queued(depends_on=second)
    for parent in (first, second, third):
        told = refused(first, depends_on=parent)
        assert told == {"depends_on": ["the job would wait for itself"]}
    edit(third, depends_on=first)
    assert third.depends_on == first


def test_a_new_parent_gives_its_weights():
    parent, job = queued(), queued()
    edit(job, start_from="job", depends_on=parent)
    assert job.params["init_path"] == f"runs/{parent.pk}/model"
    assert f"--init_path runs/{parent.pk}/model" in " ".join(job.command)


def test_weights_that_were_removed_are_refused():
    parent, job = queued(), queued()
    Job.objects.filter(pk=parent.pk).update(status="completed", files_removed="all")
    assert "were removed" in refused(job, start_from="job", depends_on=parent)["depends_on"][0]


def ran_before(**wishes):
    job = queued(**wishes)
    Job.objects.filter(pk=job.pk).update(checkpoint_step=2, resume=True)
    return job


def test_a_job_with_a_checkpoint_changes_what_a_resume_may_and_when_it_runs():
    job = ran_before()
    edit(job, params=SMALL | {"learning_rate": 0.5, "max_steps": 8}, time_limit=10, priority=-1, device_request="cpu")
    assert (job.params["learning_rate"], job.params["max_steps"]) == (0.5, 8)
    assert (job.time_limit, job.priority, job.device_request, job.checkpoint_step) == (10, -1, "cpu", 2)


def test_a_job_with_a_checkpoint_keeps_its_model_and_its_number_of_devices():
    told = ["cannot be changed: the job continues from its checkpoint"]
    assert refused(ran_before(), params=SMALL | {"hidden_size": 128}) == {"hidden_size": told}
    assert refused(ran_before(), device_count=2) == {"device_count": told}
    assert refused(ran_before(), start_from="job", depends_on=queued()) == {"depends_on": told}


def test_only_who_may_raises_a_job_to_high_but_high_it_stays_in_other_hands():
    job = queued()
    assert list(refused(job, priority=1)) == ["priority"]
    person("boss").user_permissions.add(Permission.objects.get(codename="high_priority"))
    edit(job, by="boss", priority=1)
    edit(job, priority=1, name="mine")
    assert (job.priority, job.name) == (1, "mine")


def test_what_no_form_shows_is_kept():
    job = queued(params=SMALL | {"from_resume": 1})
    edit(job, params=SMALL | {"epochs": 4})
    assert (job.params["from_resume"], job.params["epochs"]) == (1, 4)


def test_an_edit_at_the_limit_of_waiting_jobs_is_no_new_job():
    job = queued()
    hold_job(job, by=None)
    Limit.objects.create(max_queued=1)
    edit(job, name="same")
    assert (job.name, job.status) == ("same", "held")
