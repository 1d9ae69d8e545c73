"""The pages of limits."""

from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.models import Job, Limit
from tests.jobs.admin.conftest import member

LIST = "/admin/jobs/limit/"


def rows(response):
    return [(str(limit), limit.runs, limit.waits) for limit in response.context["cl"].result_list]


def jobs(owner, **numbers):
    for status, n in numbers.items():
        for _ in range(n):
            Job.objects.create(owner=owner, training_type="sft", title="SFT", status=status)


def test_the_list_shows_what_each_runs_and_has_waiting(boss, mei, viewer, browse):
    Limit.objects.create(person=None, max_running=2)
    Limit.objects.create(person=mei, max_running=1, max_queued=5)
    jobs(mei, running=1, queued=2, held=1, completed=4)
    jobs(viewer, running=2)
    page = browse(boss).get(LIST)
    assert sorted(rows(page)) == [("everybody", "viewer 2", "0"), ("mei", "1", "3")]


def test_the_number_of_queries_does_not_grow_with_the_rows(boss, mei, browse):
    client = browse(boss)

    def queries():
        with CaptureQueriesContext(connection) as seen:
            client.get(LIST)
        return len(seen)

    Limit.objects.create(person=mei, max_running=1)
    client.get(LIST)
    one_row = queries()
    for n in range(5):
        Limit.objects.create(person=member(f"person{n}"), max_running=1)
    assert queries() == one_row


def test_everybody_has_one_limit_and_the_second_is_told_so(boss, browse):
    client = browse(boss)
    client.post(f"{LIST}add/", {"max_running": "2"})
    assert [(limit.person, limit.max_running, limit.max_queued) for limit in Limit.objects.all()] == [(None, 2, None)]
    form = client.post(f"{LIST}add/", {"max_running": "3"}).context["adminform"].form
    assert form.errors["person"] == ["Everybody has a limit already: change that one, or name a person."]


def test_everybodys_limit_can_be_changed(boss, browse):
    limit = Limit.objects.create(person=None, max_running=2)
    browse(boss).post(f"{LIST}{limit.pk}/change/", {"max_running": "3", "max_queued": "9"})
    limit.refresh_from_db()
    assert (limit.max_running, limit.max_queued) == (3, 9)


def test_who_sees_jobs_reads_limits_and_an_operator_sets_them(viewer, mei, stranger, browse):
    limit = Limit.objects.create(person=mei, max_running=1)
    page = f"{LIST}{limit.pk}/change/"
    asked = {"person": mei.pk, "max_running": "7"}
    assert browse(stranger).get(LIST).status_code == 403
    for reader in (viewer, mei):
        assert (browse(reader).get(LIST).status_code, browse(reader).get(page).status_code) == (200, 200)
        assert browse(reader).post(page, asked).status_code == 403
    browse(member("operator", "view_job", "operate")).post(page, asked)
    limit.refresh_from_db()
    assert limit.max_running == 7
