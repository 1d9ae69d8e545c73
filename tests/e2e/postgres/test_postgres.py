"""What a team runs on: the services and a whole job on PostgreSQL."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.running_stack import REPOSITORY, RunningStack

pytestmark = pytest.mark.postgres

SUBMIT_AND_CHECK = """
import json
from django.contrib.auth.models import User
from django.db import connection
from jobs.models import Job
from jobs.services.submission import Submission
from jobs.services.submit import submit_job
params = dict(from_weight="none", data_path="../dataset/sft-mini.jsonl", save_dir="runs/weights", batch_size=8,
    hidden_size=64, num_hidden_layers=2, max_steps=4, log_interval=1, num_workers=0)
job = Job.objects.first() or submit_job(Submission(training_type="sft", params=params, owner=User.objects.get()))
print(json.dumps([connection.vendor, job.status, job.step, job.metrics.count(), job.log_chunks.count() > 0, job.cause]))
"""


@pytest.mark.timeout(900)
def test_the_services_pass_their_tests_on_postgresql(postgres_url):
    environment = os.environ | {"NIGHTSHIFT_TEST_DATABASE_URL": postgres_url}
    selection = ["tests/jobs", "-m", "not e2e and not browser and not postgres"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *selection]
    run = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-2000:]
    assert " passed" in run.stdout


def test_a_job_runs_to_its_end_on_postgresql(postgres_url: str, tmp_path: Path):
    stack = RunningStack(tmp_path / "home", DATABASE_URL=postgres_url).until_served()
    try:
        deadline = time.monotonic() + 90
        state = ["postgresql", "queued", 0, 0, False, ""]
        while state[1] in ("queued", "running"):
            assert time.monotonic() < deadline, state
            state = json.loads(stack.manage("shell", "-v", "0", "-c", SUBMIT_AND_CHECK))
        assert state == ["postgresql", "completed", 4, 4, True, ""]
        assert not (tmp_path / "home" / "nightshift.sqlite3").exists()
    finally:
        assert stack.stop() == 0
