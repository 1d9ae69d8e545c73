"""The heartbeat of a worker."""

import pytest

from jobs.models import Worker
from jobs.worker import presence
from tests.jobs.rows import worker

pytestmark = pytest.mark.django_db


def test_a_state_folder_that_cannot_be_read_does_not_end_the_heartbeat(settings, tmp_path, monkeypatch, caplog):
    settings.NIGHTSHIFT_HOME = tmp_path / "gone"
    turns = iter([False, False, True])
    monkeypatch.setattr(presence._stopping, "wait", lambda seconds: next(turns))
    monkeypatch.setattr(presence.connection, "close", lambda: None)  # it is the test's own
    silent = worker(seconds_silent=100)
    presence._keep_fresh(silent.name, silent.host)
    assert caplog.text.count("heartbeat not written: FileNotFoundError") == 2
    assert Worker.objects.get().heartbeat_at > silent.heartbeat_at
