"""The queue's page, and who may put jobs where."""

import pytest

from jobs.models import Job
from jobs.services.submission import Submission
from jobs.services.submit import submit_job
from tests.jobs.admin.conftest import SFT, member, told
from tests.jobs.rows import worker

QUEUE = "/admin/jobs/job/queue/"


@pytest.fixture
def operator(db):
    return member("operator", "view_job", "operate")


def another(owner, **wishes):
    return submit_job(Submission(training_type="sft", params=SFT, owner=owner, **wishes))


def test_the_queue_is_shown_in_order_with_reasons_and_only_operators_get_buttons(job, mei, viewer, operator, browse):
    worker()
    second = another(mei, name="second")
    assert [row["job"] for row in browse(viewer).get(QUEUE).context["rows"]] == [job, second]
    page = browse(viewer).get(QUEUE).content.decode()
    assert "position 1 in the queue" in page
    assert "Run next" not in page
    assert "Run next" in browse(operator).get(QUEUE).content.decode()


def test_an_empty_queue_says_so_and_strangers_see_nothing(viewer, stranger, browse):
    assert "The queue is empty." in browse(viewer).get(QUEUE).content.decode()
    assert browse(stranger).get(QUEUE).status_code == 403


@pytest.mark.parametrize(("to", "expected"), [("next", "CAB"), ("up", "ACB"), ("down", "ABC"), ("rules", "ABC")])
def test_an_operator_moves_a_job_and_stays_on_the_queue(job, mei, operator, browse, to, expected):
    worker()
    jobs = [job, another(mei), another(mei)]
    answer = browse(operator).post(f"/admin/jobs/job/{jobs[2].pk}/put/", {"to": to, "back": "queue"})
    assert (answer.status_code, answer.url) == (302, QUEUE)
    rows = browse(operator).get(QUEUE).context["rows"]
    assert [row["job"] for row in rows] == [jobs["ABC".index(name)] for name in expected]


def test_the_page_of_a_waiting_job_has_the_same_buttons_for_operators_only(job, mei, operator, browse):
    address = f"/admin/jobs/job/{job.pk}/change/"
    offered = ["Run next", f"Move job {job.pk} up", f"Move job {job.pk} down"]
    shown = browse(operator).get(address).content.decode()
    assert [button for button in (*offered, "Back to the rules") if button in shown] == offered
    assert not any(button in browse(mei).get(address).content.decode() for button in offered)
    answer = browse(operator).post(f"/admin/jobs/job/{job.pk}/put/", {"to": "next"})
    assert answer.url == address
    assert "Back to the rules" in browse(operator).get(address).content.decode()


def test_nobody_else_moves_a_job_not_even_its_owner(job, mei, viewer, stranger, operator, browse):
    address = f"/admin/jobs/job/{job.pk}/put/"
    answers = [browse(user).post(address, {"to": "next"}).status_code for user in (mei, viewer, stranger)]
    assert answers == [403, 403, 403]
    assert browse(operator).get(address).status_code == 405
    assert Job.objects.get().place == 0


def test_a_job_that_has_ended_is_not_moved_and_the_page_says_why(job, operator, browse):
    Job.objects.update(status=Job.Status.COMPLETED)
    answer = browse(operator).post(f"/admin/jobs/job/{job.pk}/put/", {"to": "next"})
    assert told(answer) == [f"Job {job.pk} is already completed."]


def test_the_number_of_queries_does_not_grow_with_the_queue(job, mei, viewer, browse, django_assert_max_num_queries):
    worker()
    for _ in range(20):
        another(mei)
    client = browse(viewer)
    with django_assert_max_num_queries(40):
        client.get(QUEUE)
