"""How many jobs a person may have waiting."""

import pytest
from django.core.exceptions import ValidationError

from jobs.models import Job, Limit
from jobs.services.lifecycle import hold_job
from jobs.services.limits import waiting_limit
from tests.jobs.rows import person, queued

pytestmark = pytest.mark.django_db


def test_a_person_s_own_limit_goes_before_everybody_s():
    Limit.objects.create(max_queued=2)
    Limit.objects.create(person=person("bob"), max_queued=None)
    assert (waiting_limit(person("ada")), waiting_limit(person("bob"))) == (2, None)


def test_one_job_more_than_may_wait_is_refused_with_the_number_and_what_to_do():
    Limit.objects.create(max_queued=2)
    hold_job(queued(), by=None)  # a held job waits, too
    queued()
    with pytest.raises(ValidationError) as caught:
        queued()
    told = "ada's limit of waiting jobs is 2 and reached: wait until one starts, or cancel one"
    assert caught.value.message_dict == {"__all__": [told]}
    assert Job.objects.count() == 2


def test_running_and_ended_jobs_and_those_of_others_do_not_count():
    Limit.objects.create(max_queued=1)
    Job.objects.filter(pk=queued().pk).update(status=Job.Status.RUNNING)
    Job.objects.filter(pk=queued().pk).update(status=Job.Status.FAILED)
    queued(owner="bob")
    assert queued().status == Job.Status.QUEUED


def test_a_form_sent_twice_finds_its_job_even_at_the_limit():
    Limit.objects.create(max_queued=1)
    first = queued(submission_key="once")
    assert queued(submission_key="once") == first


def test_a_limit_of_none_lets_nobody_queue():
    Limit.objects.create(max_queued=0)
    with pytest.raises(ValidationError):
        queued()
