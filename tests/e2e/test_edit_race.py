"""Two people act on waiting jobs at the same moment: together they cannot do what neither could do alone."""

import os
import subprocess
import sys

import pytest

from jobs.models import Job, Limit
from tests.jobs.rows import person, queued
from trainers.paths import REPOSITORY

ACTOR = """
import sys, django
django.setup()
from django.core.exceptions import ValidationError
from jobs.models import Job
from jobs.services.edit import edit_job
from jobs.services.submission import Submission
from tests.jobs.rows import SMALL, person, queued

def edit(job, parent):
    asked = Submission(training_type="sft", params=SMALL, owner=person(), depends_on=Job.objects.get(pk=parent))
    edit_job(Job.objects.get(pk=job), asked, by=person())

for line in sys.stdin:
    word, *numbers = line.split()
    try:
        {"edit": edit, "submit": queued}[word](*map(int, numbers))
        print("done", flush=True)
    except ValidationError:
        print("refused", flush=True)
"""
ROUNDS = 20
pytestmark = pytest.mark.e2e


@pytest.fixture
def rivals(database):
    """Return two processes that act, both ready."""
    person()
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "webadmin.settings"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": REPOSITORY, "env": environment}
    found = [subprocess.Popen([sys.executable, "-c", ACTOR], **pipes) for _ in range(2)]
    first = queued(hold=True)
    for process in found:
        assert told([process], f"edit {first.pk} {first.pk}") == ["refused"]
    yield found
    for process in found:
        process.communicate(timeout=20)


def told(processes, *orders):
    for process, order in zip(processes, orders, strict=True):
        process.stdin.write(f"{order}\n")
        process.stdin.flush()
    return [process.stdout.readline().strip() for process in processes]


def test_of_two_edits_that_close_a_circle_one_is_refused(rivals):
    for _ in range(ROUNDS):
        top, low = queued(hold=True), queued(hold=True)
        middle = queued(depends_on=low, hold=True)  # the circle would be of three
        outcomes = told(rivals, f"edit {low.pk} {top.pk}", f"edit {top.pk} {middle.pk}")
        assert sorted(outcomes) == ["done", "refused"]


def test_of_two_submissions_for_one_place_one_is_refused(rivals):
    limit = Limit.objects.create(person=person(), max_queued=1)
    for _ in range(ROUNDS):
        limit.max_queued = Job.objects.count() + 1
        limit.save()
        assert sorted(told(rivals, "submit", "submit")) == ["done", "refused"]
