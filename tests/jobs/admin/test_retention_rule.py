"""The pages of retention rules."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobs.models import Job, RetentionRule
from tests.jobs.admin.conftest import member, told

LIST = "/admin/jobs/retentionrule/"
KEPT = "every ended job is young enough"
TYPED = {"name": "old", "removes": "checkpoints", "keep_days": "30", "keep_last": "0", "keep_best": "0"}


@pytest.fixture
def operator(db):
    return member("operator", "view_job", "operate")


@pytest.fixture
def rule(db):
    return RetentionRule.objects.create(name="old", keep_days=14, keep_last=0, keep_best=0)


def ended(owner, name, *, days, size=700_000_000):
    finished = timezone.now() - timedelta(days=days)
    return Job.objects.create(
        owner=owner, training_type="sft", title="SFT", name=name, status="completed", finished_at=finished,
        checkpoint_step=9, checkpoint_host="box", disk_bytes=size,
    )  # fmt: skip


@pytest.fixture
def old(mei):
    return ended(mei, "stale", days=20)


def test_the_page_of_a_rule_shows_what_it_would_remove(viewer, mei, rule, old, browse):
    ended(mei, "fresh", days=1)
    text = browse(viewer).get(f"{LIST}{rule.pk}/change/").content.decode()
    for expected in ("SFT stale", "0.7 GB", "box", "Checkpoints", "1 job", "nothing happens by"):
        assert expected in text
    assert "SFT fresh" not in text
    old.refresh_from_db()
    assert old.files_removed_at is None


def test_a_rule_that_removes_nothing_says_why(viewer, rule, browse):
    assert KEPT in browse(viewer).get(f"{LIST}{rule.pk}/change/").content.decode()


def test_the_number_of_queries_does_not_grow_with_the_removals(viewer, mei, rule, old, browse):
    client = browse(viewer)

    def queries():
        with CaptureQueriesContext(connection) as seen:
            client.get(f"{LIST}{rule.pk}/change/")
        return len(seen)

    client.get(LIST)
    one_row = queries()
    for n in range(5):
        ended(mei, f"stale {n}", days=20)
    assert queries() == one_row


def test_files_are_removed_after_a_question(operator, rule, old, browse):
    client = browse(operator)
    question = client.get(f"{LIST}{rule.pk}/remove/").content.decode()
    assert "What is removed does not come back." in question
    assert "SFT stale" in question
    old.refresh_from_db()
    assert old.files_removed_at is None
    assert told(client.post(f"{LIST}{rule.pk}/remove/")) == ["The files of 1 job (0.7 GB) are removed by their hosts."]
    old.refresh_from_db()
    assert old.files_removed_at is not None
    assert KEPT in client.get(f"{LIST}{rule.pk}/change/").content.decode()


def test_a_rule_is_written_with_a_known_type(operator, browse):
    client = browse(operator)
    client.post(f"{LIST}add/", TYPED | {"training_type": "grpo", "active": "on"})
    rule = RetentionRule.objects.get()
    assert (rule.training_type, rule.keep_days, rule.active) == ("grpo", 30, True)
    form = client.post(f"{LIST}add/", TYPED | {"name": "b", "training_type": "gpro"}).context["adminform"].form
    assert list(form.errors) == ["training_type"]


def test_who_sees_jobs_reads_rules_and_an_operator_sets_and_applies_them(viewer, mei, stranger, rule, old, browse):
    page = f"{LIST}{rule.pk}/change/"
    assert browse(stranger).get(LIST).status_code == 403
    for person in (viewer, mei):
        client = browse(person)
        assert (client.get(LIST).status_code, client.get(page).status_code) == (200, 200)
        assert f"{rule.pk}/remove/" not in client.get(page).content.decode()
        assert client.post(page, TYPED).status_code == 403
        assert client.get(f"{LIST}{rule.pk}/remove/").status_code == 403
        assert client.post(f"{LIST}{rule.pk}/remove/").status_code == 403
    old.refresh_from_db()
    assert old.files_removed_at is None
