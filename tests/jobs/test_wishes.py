"""What may be wished for a job beside its parameters."""

import pytest
from django.contrib.auth.models import Permission
from django.core.exceptions import ValidationError

from jobs.models import Job
from tests.jobs.rows import person, queued, worker

pytestmark = pytest.mark.django_db


def refused(**wishes):
    with pytest.raises(ValidationError) as caught:
        queued(**wishes)
    return caught.value.message_dict


def test_high_priority_needs_its_right():
    told = "ada may not queue at high priority; choose normal, or ask an administrator for the right"
    assert refused(priority=Job.Priority.HIGH) == {"priority": [told]}
    person("bob").user_permissions.add(Permission.objects.get(codename="high_priority"))
    assert queued(owner="bob", priority=Job.Priority.HIGH).priority == 1


def test_low_priority_is_for_everybody():
    assert queued(priority=Job.Priority.LOW).priority == -1


def test_a_priority_of_no_class_is_refused():
    assert list(refused(priority=7)) == ["priority"]


@pytest.mark.parametrize("count", [0, -1, 129])
def test_a_count_that_no_host_can_have_is_refused(count):
    assert refused(device_count=count) == {"device_count": ["from 1 to 128 devices"]}


def test_a_named_device_is_one():
    named = worker().device
    wrong = refused(device_request=Job.DeviceRequest.NAMED, device=named, device_count=2)
    assert wrong == {"device_count": ["exactly one when it is a named device"]}


@pytest.mark.parametrize("wishes", [{"device_request": "label"}, {"device_label": "80g"}])
def test_a_label_and_the_request_for_it_go_together(wishes):
    assert list(refused(**wishes)) == ["device"]


@pytest.mark.parametrize("minutes", [0, -5, 527_041])
def test_a_time_limit_lies_between_a_minute_and_a_year(minutes):
    assert list(refused(time_limit=minutes)) == ["time_limit"]
    assert queued(time_limit=527_040).time_limit == 527_040
