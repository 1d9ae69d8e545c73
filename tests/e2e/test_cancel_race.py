"""A job is cancelled in the very moment in which it goes back to the queue."""

import threading
import time

import pytest
from django.db import connection, connections, transaction

from jobs.models import Attempt, Job
from jobs.services.attempts import requeue_attempt
from jobs.services.claim import claim_next
from jobs.services.lifecycle import request_cancel
from tests.jobs.rows import queued, worker

pytestmark = pytest.mark.e2e


def test_a_cancel_that_meets_a_return_to_the_queue_is_not_lost(database):
    job = queued()
    attempt = claim_next(worker())
    going_back, mine = threading.Event(), connections["default"]

    def go_back():
        connections["default"] = mine.copy()  # a new thread would have the settings' own database
        with transaction.atomic():
            requeue_attempt(attempt, Attempt.Outcome.DRAINED, cause="the worker was stopped")
            going_back.set()
            time.sleep(0.5)
        connection.close()

    thread = threading.Thread(target=go_back)
    thread.start()
    assert going_back.wait(10)
    request_cancel(job, by=None)
    thread.join()
    assert Job.objects.get().status == Job.Status.CANCELLED
