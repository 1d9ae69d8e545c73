"""The list of jobs."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobs.models import Attempt, Batch, Device, Job
from jobs.services.submission import Submission
from jobs.services.submit import submit_job
from tests.jobs.admin.conftest import SFT

LIST = "/admin/jobs/job/"


def submit(owner, n, **asked):
    return [submit_job(Submission(training_type="sft", params=SFT, owner=owner, **asked)) for _ in range(n)]


def shown(response):
    return [job.pk for job in response.context["cl"].result_list]


def test_the_number_of_queries_does_not_grow_with_the_rows(boss, mei, browse):
    client = browse(boss)

    def queries():
        with CaptureQueriesContext(connection) as seen:
            client.get(LIST)
        return len(seen)

    batch = Batch.objects.create(name="night", owner=mei)
    device = Device.objects.create(key="cpu:a", kind="cpu", host="a", name="CPU")
    first = submit(mei, 1)[0]

    def add_rows(n):
        for job in submit(mei, n, depends_on=first, batch=batch, device_request="named", device=device):
            Attempt.objects.create(job=job, number=1, token=Job.new_token(), device=device, started_at=timezone.now())

    add_rows(2)
    client.get(LIST)
    three_rows = queries()
    add_rows(27)
    assert queries() == three_rows
    assert len(shown(client.get(LIST))) == 30


def test_a_row_shows_status_reason_progress_and_last_value(boss, job, browse):
    Job.objects.filter(pk=job.pk).update(
        status="failed", cause="line 3 is no JSON", step=5, total_steps=10, last_values={"loss": 2.5}
    )
    page = browse(boss).get(LIST).content.decode()
    for text in ("Failed", "line 3 is no JSON", "5/10", "loss 2.5", "SFT", "first", "mei"):
        assert text in page


def test_a_waiting_row_says_why(boss, job, browse):
    assert "no worker is running" in browse(boss).get(LIST).content.decode()


def test_a_cispo_job_is_filtered_under_grpo(boss, mei, job, browse):
    cispo = submit_job(Submission(training_type="grpo", params={"loss_type": "cispo"}, owner=mei))
    response = browse(boss).get(LIST, {"training_type": "grpo"})
    assert shown(response) == [cispo.pk]
    assert "GRPO (CISPO)" in response.content.decode()


@pytest.mark.parametrize(
    ("query", "found"),
    [({"status__exact": "queued"}, 1), ({"status__exact": "running"}, 0), ({"q": "first"}, 1), ({"q": "mei"}, 1)],
)
def test_filters_and_search_find_the_job(boss, job, browse, query, found):
    assert len(shown(browse(boss).get(LIST, query))) == found


def test_a_number_finds_the_job_of_that_number(boss, mei, job, browse):
    submit(mei, 2)
    assert shown(browse(boss).get(LIST, {"q": str(job.pk)})) == [job.pk]


def test_a_job_that_ended_is_not_refreshed(boss, job, browse):
    client = browse(boss)
    assert "data-unfinished" in client.get(LIST).content.decode()
    Job.objects.filter(pk=job.pk).update(status="completed", finished_at=timezone.now())
    assert "data-unfinished" not in client.get(LIST).content.decode()


def test_jobs_cannot_be_edited_or_deleted_not_even_by_a_superuser(boss, job, browse):
    client = browse(boss)
    assert client.post(f"{LIST}{job.pk}/change/", {"name": "new"}).status_code == 405
    assert client.post(f"{LIST}{job.pk}/delete/", {"post": "yes"}).status_code == 403
    client.post(LIST, {"action": "delete_selected", "_selected_action": [job.pk], "post": "yes"})
    assert Job.objects.get().name == "first"


def test_who_may_not_see_jobs_sees_no_list(stranger, browse):
    assert browse(stranger).get(LIST).status_code == 403
