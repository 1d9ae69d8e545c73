"""A child is submitted and its parent's weights are removed at the same moment: one of the two wins, never both."""

import os
import subprocess
import sys
import time

import pytest
from django.utils import timezone

from jobs.models import Artifact, Job, RetentionRule
from tests.jobs.rows import person, queued
from trainers.paths import REPOSITORY

REMOVER = """
import sys, django
django.setup()
from jobs.models import RetentionRule
from jobs.services.retention import apply
for line in sys.stdin:
    apply(RetentionRule.objects.get(), by=None)
    print("done", flush=True)
"""
SUBMITTER = """
import sys, django
django.setup()
from django.core.exceptions import ValidationError
from jobs.models import Job
from tests.jobs.rows import queued
for line in sys.stdin:
    try:
        queued(start_from="job", depends_on=Job.objects.get(pk=int(line)))
        print("submitted", flush=True)
    except ValidationError:
        print("refused", flush=True)
"""
ROUNDS = 24
pytestmark = pytest.mark.e2e


@pytest.fixture
def rivals(database):
    """Return a process that removes and one that submits, both ready."""
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "webadmin.settings"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": REPOSITORY, "env": environment}
    found = [subprocess.Popen([sys.executable, "-c", program], **pipes) for program in (REMOVER, SUBMITTER)]
    yield found
    for process in found:
        process.communicate(timeout=20)


def ended():
    job = queued()
    Artifact.objects.create(job=job, path="model/model.safetensors", size=1)
    Job.objects.filter(pk=job.pk).update(status="completed", finished_at=timezone.now())
    return job


def test_of_a_submission_and_a_removal_one_wins(rivals):
    person()
    RetentionRule.objects.create(name="all", removes="all", keep_days=0, keep_last=0, keep_best=0, active=True)
    outcomes = []
    for number in range(ROUNDS):
        parent = ended()
        first, second = rivals if number % 2 else reversed(rivals)
        for process, delay in ((first, 0), (second, 0.15 * number / ROUNDS)):
            time.sleep(delay)
            process.stdin.write(f"{parent.pk}\n")
            process.stdin.flush()
        _, told = (process.stdout.readline().strip() for process in rivals)
        parent.refresh_from_db()
        outcomes.append((told, parent.files_removed, parent.dependents.count()))
        Job.objects.filter(status="queued").update(status="cancelled", depends_on=None)
        Job.objects.filter(pk=parent.pk).update(files_removed="all")
    assert set(outcomes) == {("submitted", "", 1), ("refused", "all", 0)}
