"""What a job needs of a disk, and hosts that are paused for want of room."""

import pytest
from django.utils import timezone

from jobs.models import Event, Host, Job
from jobs.services.claim import claim_next
from jobs.services.disk import expected_bytes, gigabytes, note_disk
from jobs.services.reasons import waiting_reasons
from tests.jobs.rows import queued, worker

pytestmark = pytest.mark.django_db
GB = 1_000_000_000


@pytest.fixture(autouse=True)
def reserve(settings):
    settings.NIGHTSHIFT_DISK_RESERVE = 2 * GB


def host(name="here", **values):
    return Host.objects.create(name=name, seen_at=timezone.now(), **{"disk_total": 100 * GB} | values)


def note(free, total=100 * GB):
    note_disk("here", free=free, total=total, place="/srv/nightshift")


def paused_reason():
    return Host.objects.get(name="here").paused_reason


def kinds():
    return list(Event.objects.exclude(kind__in=("submitted", "started")).order_by("id").values_list("kind", flat=True))


def test_the_reason_names_host_free_needed_and_reserved_bytes():
    worker()
    host(disk_free=2_020_000_000)
    job = queued(params={"hidden_size": 512})
    needed = gigabytes(expected_bytes(job))
    assert waiting_reasons([job]) == {
        job.pk: f"host here has 2.0 GB free, this job needs about {needed} and 2.0 GB stay free"
    }
    assert 300_000_000 < expected_bytes(job) < 1_000_000_000


def test_a_job_starts_where_there_is_room_for_it():
    first = worker()
    job = queued()
    host(disk_free=2 * GB + expected_bytes(job) - 1)
    assert claim_next(first) is None
    Host.objects.update(disk_free=2 * GB + expected_bytes(job))
    assert claim_next(first).job == job


def test_a_disk_that_nobody_measured_keeps_no_job():
    first = worker()
    host(disk_free=0, disk_total=0)
    queued()
    assert claim_next(first) is not None


def test_a_host_that_is_gone_keeps_no_job_of_others():
    first = worker()
    host("gone", disk_free=1, paused_reason="only 1 B free")
    queued()
    assert claim_next(first) is not None


def test_below_the_reserve_a_host_is_paused_and_its_running_jobs_are_warned_once():
    first = worker()
    host(disk_free=50 * GB)
    running, waiting = queued(), queued()
    claim_next(first)
    note(1_100_000_000)
    assert paused_reason() == "only 1.1 GB free on /srv/nightshift; free some space or lower retention"
    assert waiting_reasons([waiting])[waiting.pk].startswith("here is paused: only 1.1 GB free")
    note(900_000_000)
    assert paused_reason().startswith("only 0.9 GB free")
    assert kinds() == ["host_paused", "warned"]
    assert Event.objects.get(kind="warned").job == running


def test_a_paused_host_resumes_only_with_clearly_more_than_the_reserve():
    host(disk_free=50 * GB)
    note(1 * GB)
    note(2_100_000_000)
    assert paused_reason().startswith("only 1.0 GB free")
    note(2_500_000_000)
    assert paused_reason() == ""
    assert kinds() == ["host_paused", "host_resumed"]


@pytest.mark.parametrize("reason", ["moves to another rack", "only for the demo"])
def test_a_person_pauses_a_host_for_other_reasons_which_room_does_not_end(reason):
    host(paused_reason=reason)
    note(50 * GB)
    note(1 * GB)
    assert paused_reason() == reason
    assert kinds() == []


def test_a_disk_that_can_no_longer_be_measured_pauses_nothing():
    host(disk_free=50 * GB)
    note(1 * GB)
    note(0, total=0)
    assert paused_reason() == ""


def test_what_a_resumed_job_has_written_it_need_not_write_again():
    job = queued()
    whole = expected_bytes(job)
    job.checkpoint_host, job.disk_bytes = "here", 40_000
    assert expected_bytes(job) == whole - 40_000
    job.disk_bytes = 10 * whole
    assert expected_bytes(job) == 0


def test_a_child_of_weights_that_are_not_seen_here_counts_as_its_parent():
    parent = queued(params={"hidden_size": 768, "num_hidden_layers": 16})
    child = queued(start_from="job", depends_on=parent, params={"hidden_size": 64})
    assert expected_bytes(child) == expected_bytes(parent)


def test_a_job_of_a_type_that_is_no_more_is_expected_to_write_nothing():
    assert expected_bytes(Job(training_type="gone", params={"x": 1})) == 0


@pytest.mark.parametrize(
    ("size", "text"), [(1_200_000_000, "1.2 GB"), (99_000_000, "99.0 MB"), (100_000_000, "0.1 GB")]
)
def test_bytes_as_people_read_them(size, text):
    assert gigabytes(size) == text
