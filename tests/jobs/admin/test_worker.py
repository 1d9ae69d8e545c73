"""The page of workers."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobs.models import Attempt, Device, Job, Worker
from tests.jobs.admin.conftest import member

LIST = "/admin/jobs/worker/"


def worker(n=0, *, heard=0, stopped=None):
    device = Device.objects.create(key=f"GPU-{n}", kind="gpu", host="box", name="H100", index=n)
    heartbeat = timezone.now() - timedelta(seconds=heard)
    stopped_at = timezone.now() if stopped else None
    return Worker.objects.create(
        name=f"gpu{n}@box", host="box", device=device, queue="q", heartbeat_at=heartbeat, stopped_at=stopped_at
    )


@pytest.mark.parametrize(
    ("heard", "stopped", "state"), [(0, None, "alive"), (3600, None, "silent"), (3600, True, "stopped")]
)
def test_a_worker_is_alive_silent_or_stopped(boss, browse, heard, stopped, state):
    worker(heard=heard, stopped=stopped)
    page = browse(boss).get(LIST).content.decode()
    assert f"\n{state}\n" in page


def test_a_worker_shows_what_its_device_does(viewer, job, browse):
    device = worker().device
    attempt = Attempt.objects.create(job=job, number=1, token=Job.new_token(), started_at=timezone.now())
    Device.objects.filter(pk=device.pk).update(attempt=attempt)
    text = browse(viewer).get(LIST).content.decode()
    for expected in ("\nbusy\n", "SFT first", f'href="/admin/jobs/device/{device.pk}/change/"'):
        assert expected in text


def test_an_operator_finds_the_way_to_drain_a_workers_device(viewer, browse):
    drain = f'href="/admin/jobs/device/{worker().device_id}/drain/"'
    assert drain in browse(member("operator", "view_job", "operate")).get(LIST).content.decode()
    assert drain not in browse(viewer).get(LIST).content.decode()


def test_the_number_of_queries_does_not_grow_with_the_workers(viewer, browse):
    client = browse(viewer)

    def queries():
        with CaptureQueriesContext(connection) as seen:
            client.get(LIST)
        return len(seen)

    worker()
    client.get(LIST)
    one_row = queries()
    for n in range(1, 6):
        worker(n)
    assert queries() == one_row


def test_who_sees_no_jobs_sees_no_workers(stranger, browse):
    assert browse(stranger).get(LIST).status_code == 403
