"""The pages of failure patterns."""

import threading

import pytest

from jobs.models import FailurePattern
from jobs.worker.first_match import first_match_apart
from tests.jobs.admin.conftest import member

LIST = "/admin/jobs/failurepattern/"
NFS = {"title": "the NFS is away", "pattern": r"nfs: server \S+ not responding", "advice": "Wait.", "order": "5"}


@pytest.fixture
def operator(db):
    return member("operator", "view_job", "operate")


@pytest.fixture
def builtin(db):
    return FailurePattern.objects.create(title="ours", pattern="loss is nan", order=1, builtin=True)


def test_an_operator_adds_a_pattern_and_it_answers(operator, browse):
    client = browse(operator)
    client.post(f"{LIST}add/", NFS)
    assert not FailurePattern.objects.get(title="the NFS is away").builtin
    log = {"log": "step 3\nnfs: server store1 not responding\nstep 4"}
    page = client.post(f"{LIST}try/", log)
    assert page.context["found"].pattern.title == "the NFS is away"
    text = page.content.decode()
    assert "Wait." in text
    assert "nfs: server store1 not responding" in text


def test_what_no_pattern_matches_says_so(viewer, browse):
    page = browse(viewer).post(f"{LIST}try/", {"log": "all is well"})
    assert "No pattern matches" in page.content.decode()


def test_a_pattern_that_would_take_for_ever_holds_up_nobody(viewer, builtin, browse):
    """A request is answered in a thread, in which Python cannot interrupt a search."""
    FailurePattern.objects.create(title="slow", pattern="(a|aa)+$", order=0)
    found = []
    lines = "a" * 60 + "!\nloss is nan"
    patterns = list(FailurePattern.objects.all())
    thread = threading.Thread(target=lambda: found.append(first_match_apart(patterns, lines.split("\n"))), daemon=True)
    thread.start()
    thread.join(20)
    assert [match.pattern.title for match in found] == ["ours"]
    assert browse(viewer).post(f"{LIST}try/", {"log": lines}).context["found"].pattern.title == "ours"


def test_a_lower_order_answers_first(viewer, builtin, browse):
    FailurePattern.objects.create(title="later", pattern="nan", order=2)
    page = browse(viewer).post(f"{LIST}try/", {"log": "loss is nan"})
    assert page.context["found"].pattern.title == "ours"


def test_what_is_no_regular_expression_stands_at_its_field(operator, browse):
    form = browse(operator).post(f"{LIST}add/", NFS | {"pattern": "(open"}).context["adminform"].form
    assert list(form.errors) == ["pattern"]


def test_of_a_pattern_that_ships_only_advice_and_order_change(operator, builtin, browse):
    browse(operator).post(
        f"{LIST}{builtin.pk}/change/",
        {"title": "mine", "pattern": "x", "machine_fault": "on", "advice": "Lower it.", "order": "7"},
    )
    builtin.refresh_from_db()
    assert (builtin.title, builtin.pattern, builtin.machine_fault) == ("ours", "loss is nan", False)
    assert (builtin.advice, builtin.order) == ("Lower it.", 7)


def test_a_pattern_that_ships_is_not_deleted_and_the_teams_is(boss, builtin, browse):
    own = FailurePattern.objects.create(title="own", pattern="x")
    client = browse(boss)
    assert client.post(f"{LIST}{builtin.pk}/delete/", {"post": "yes"}).status_code == 403
    assert client.post(f"{LIST}{own.pk}/delete/", {"post": "yes"}).status_code == 302
    assert FailurePattern.objects.filter(title__in=["ours", "own"]).get() == builtin


def test_the_order_is_changed_in_the_list_by_operators_only(operator, viewer, builtin, browse):
    assert 'name="form-0-order"' in browse(operator).get(LIST).content.decode()
    page = browse(viewer).get(LIST)
    assert page.status_code == 200
    assert 'name="form-0-order"' not in page.content.decode()
    forms = {
        "form-TOTAL_FORMS": 1,
        "form-INITIAL_FORMS": 1,
        "form-0-id": builtin.pk,
        "form-0-order": 9,
        "_save": "Save",
    }
    browse(viewer).post(f"{LIST}?q=ours", forms)
    builtin.refresh_from_db()
    assert builtin.order == 1
    browse(operator).post(f"{LIST}?q=ours", forms)
    builtin.refresh_from_db()
    assert builtin.order == 9


def test_who_sees_jobs_reads_and_tries_patterns_and_an_operator_sets_them(viewer, mei, stranger, builtin, browse):
    assert browse(stranger).get(LIST).status_code == 403
    assert browse(stranger).post(f"{LIST}try/", {"log": "x"}).status_code == 403
    for reader in (viewer, mei):
        client = browse(reader)
        assert client.get(f"{LIST}try/").status_code == 200
        assert client.get(f"{LIST}{builtin.pk}/change/").status_code == 200
        assert client.post(f"{LIST}add/", NFS).status_code == 403
        assert client.post(f"{LIST}{builtin.pk}/change/", NFS).status_code == 403
