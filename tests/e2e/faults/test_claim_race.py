"""Many processes claim from one database at the same moment."""

import os
import subprocess
import sys
from collections import Counter

import pytest

from jobs.models import Attempt
from tests.jobs.rows import queued, worker
from trainers.paths import REPOSITORY

CLAIMER = """
import sys, django
django.setup()
from jobs.models import Device, Worker
from jobs.services.claim import claim_next
worker = Worker.objects.get(name=sys.argv[1])
while attempt := claim_next(worker):
    print(attempt.job_id)
    Device.objects.filter(attempt=attempt).update(attempt=None)
"""
pytestmark = [pytest.mark.e2e, pytest.mark.fault(17)]
PROCESSES, JOBS = 8, 60


def test_eight_processes_claim_every_job_once_and_are_never_locked_out(database, happened):
    for _ in range(JOBS):
        queued()
    for number in range(PROCESSES):
        worker(f"cpu{number}@here", key=f"cpu:{number}")
    claimers = [
        subprocess.Popen(
            [sys.executable, "-c", CLAIMER, f"cpu{number}@here"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
            env=os.environ | {"DJANGO_SETTINGS_MODULE": "webadmin.settings"},
        )
        for number in range(PROCESSES)
    ]
    outputs = [claimer.communicate(timeout=100) for claimer in claimers]
    assert [error for _, error in outputs] == [""] * PROCESSES
    claimed = Counter(line for output, _ in outputs for line in output.split())
    assert (len(claimed), set(claimed.values())) == (JOBS, {1})
    assert Attempt.objects.count() == JOBS
    happened(f"{PROCESSES} processes claimed {JOBS} jobs once each, no error")
