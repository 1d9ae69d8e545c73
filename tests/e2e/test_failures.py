"""What people read after a failure, on the real stack: name, line, advice, and whether it is tried again."""

from pathlib import Path

import pytest

from jobs.models import Job
from tests.e2e.conftest import SECONDS, LiveStack, wait_for_status
from tests.e2e.live_stack import asked, running

pytestmark = pytest.mark.e2e
FULL = "the disk is full: OSError: [Errno 28] No space left on device: 'checkpoint.pt' (on "


@pytest.fixture
def live(database, short_lease):
    """A stack whose trainers fail."""
    trainer = Path(__file__).with_name("failing_trainer.py")
    with running(LiveStack(database, SECONDS | {"NIGHTSHIFT_TRAINER": str(trainer)})) as stack:
        yield stack


def test_each_failure_has_its_name_and_advice_and_only_the_machines_is_tried_again(live):
    once, memory, package = asked("full_disk_once"), asked("gpu_memory"), asked("package")
    wait_for_status(once, Job.Status.COMPLETED)
    wait_for_status(memory, Job.Status.OUT_OF_MEMORY)
    wait_for_status(package, Job.Status.FAILED)
    first, second = once.attempts.order_by("number")
    assert first.cause.startswith(FULL)
    assert (first.outcome, second.outcome, once.requeues, once.cause, once.advice) == ("lost", "completed", 1, "", "")
    assert memory.cause == (
        "the GPU ran out of memory: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    )
    assert "--accumulation_steps" in memory.advice
    assert package.cause == (
        "a Python package is missing or does not fit: ModuleNotFoundError: No module named 'flash_attn'"
    )
    assert package.advice.startswith("Install the requirements")
    assert (memory.attempts.count(), package.attempts.count()) == (1, 1)


def test_a_disk_that_stays_full_is_given_up_after_three_restarts(live):
    job = asked("full_disk")
    wait_for_status(job, Job.Status.LOST)
    assert job.cause.startswith(FULL)
    assert job.cause.endswith("; given up after 3 restarts")
    assert job.advice.startswith("Make room")
    assert [attempt.cause.startswith(FULL) for attempt in job.attempts.all()] == [True] * 4
