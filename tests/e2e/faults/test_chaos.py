"""A storm of one minute. Another seed for each database; ``python -m tests.e2e.chaos`` runs as many as wanted."""

import pytest
from django.db import connection

from tests.e2e.conftest import SECONDS, TRAINER
from tests.e2e.live_stack import LiveStack, pretended_gpus
from tests.e2e.storm import weather

pytestmark = [pytest.mark.e2e, pytest.mark.fault(18)]
SEEDS = {"sqlite": 11, "postgresql": 31}


def test_nothing_is_lost_or_run_twice_in_a_storm(request, database, short_lease, happened):
    stack = LiveStack(database, SECONDS | {"NIGHTSHIFT_TRAINER": str(TRAINER)}, pretended_gpus(3))
    server = request.getfixturevalue("postgres_server") if connection.vendor == "postgresql" else None
    report = weather(stack, SEEDS[connection.vendor], 60, server)
    print(report)
    assert report.broken == {}
    happened(f"seed {report.seed}: {report.injected.total()} faults, {report.attempts} attempts, no rule broken")
