"""``manage.py retention``."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from tests.jobs.test_retention import ended, rule

pytestmark = pytest.mark.django_db


def shown(*arguments):
    out = StringIO()
    call_command("retention", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_shows_and_removes_only_when_told():
    job = ended(model=700_000_000, disk_bytes=1_500_000_100)
    rule()
    rule("idle", active=False)
    told = shown()
    assert "old: would remove checkpoints and weights of 1 jobs, 1.5 GB" in told
    assert "idle (inactive: it removes nothing): would remove" in told
    assert f"  {job.pk} SFT" in told
    job.refresh_from_db()
    assert job.files_removed == ""
    assert "idle (inactive: it removes nothing): would remove" in shown("--apply", "--rule", "idle")
    assert "old: removed checkpoints and weights of 1 jobs, 1.5 GB" in shown("--apply")
    job.refresh_from_db()
    assert job.files_removed == "all"
    with pytest.raises(CommandError, match="there is no rule gone"):
        shown("--rule", "gone")
