"""A host whose disk runs low, and files that retention removes, on the real stack."""

import os
import subprocess
from io import StringIO

import pytest
from django.core.management import call_command

from jobs.models import Event, Host, Job, RetentionRule
from jobs.services.lifecycle import resume_job
from jobs.services.reasons import waiting_reasons
from tests.e2e.databases import url_database
from tests.e2e.live_stack import SECONDS, TRAINER, LiveStack, asked, running, wait_for, wait_for_status, wait_for_step
from tests.jobs.rows import SMALL, person, queued

pytestmark = pytest.mark.e2e

RESERVE = 50_000_000


@pytest.fixture
def small_home(home):
    """The state folder on a file system of 300 MiB."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300m", "tmpfs", home], check=True)
    yield home
    subprocess.run(["umount", "--lazy", home], check=True)


def small_job(*, steps):
    return queued("grpo", params=SMALL | {"save_weight": "ok", "max_steps": steps})


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk, which only root may")
def test_a_host_with_too_little_room_finishes_what_runs_and_starts_nothing_until_there_is_room(
    small_home, short_lease, settings, django_db_blocker, tmp_path
):
    settings.NIGHTSHIFT_DISK_RESERVE = RESERVE
    environment = SECONDS | {"NIGHTSHIFT_TRAINER": str(TRAINER), "NIGHTSHIFT_DISK_RESERVE": str(RESERVE)}
    with (
        django_db_blocker.unblock(),
        url_database(f"sqlite:///{tmp_path}/nightshift.sqlite3", small_home),
        running(LiveStack(small_home, environment)) as live,
    ):
        job = small_job(steps=40)
        wait_for_step(live, job, 3)
        ballast = small_home / "ballast"
        ballast.write_bytes(bytes(270_000_000))
        wait_for(lambda: Host.objects.get().paused_reason, 10)
        following = small_job(steps=1)
        wait_for_status(job, Job.Status.COMPLETED)
        following.refresh_from_db()
        [reason] = waiting_reasons([following]).values()
        assert f"is paused: only {Host.objects.get().disk_free / 1e6:.1f} MB free on {small_home}" in reason
        assert job.events.filter(kind="warned").count() == 1
        ballast.unlink()
        wait_for_status(following, Job.Status.COMPLETED)
        kinds = [Event.Kind.HOST_PAUSED, Event.Kind.HOST_RESUMED]
        assert list(Event.objects.filter(job=None).order_by("id").values_list("kind", flat=True)) == kinds


def test_removed_files_leave_the_disk_and_the_job_starts_over(live):
    job = asked(steps=3)
    wait_for_status(job, Job.Status.COMPLETED)
    run = live.home / "runs" / str(job.pk)
    assert job.disk_bytes == sum(path.stat().st_size for path in run.rglob("*") if path.is_file())
    assert (run / "model").is_dir()
    RetentionRule.objects.create(name="all", removes="all", keep_days=0, keep_last=0, keep_best=0, active=True)
    call_command("retention", "--apply", stdout=StringIO())
    assert sorted(path.name for path in run.iterdir() if path.is_dir()) == []
    assert (run / "log.txt").exists()
    job.refresh_from_db()
    resume_job(job, by=person())
    wait_for_status(job, Job.Status.COMPLETED)
    assert job.events.filter(kind="started_over").count() == 1
    assert [word for word in live.words(job) if word == "STEP 1"] == 2 * ["STEP 1"]
    assert (run / "model").is_dir()
