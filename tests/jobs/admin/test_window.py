"""The pages of windows."""

from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from jobs.admin.window import standing
from jobs.models import Job, Window
from tests.jobs.admin.conftest import member, told

LIST = "/admin/jobs/window/"
NIGHT = {"name": "night", "time_zone": "Europe/Berlin", "opens": "20:00", "closes": "08:00", "at_end": "run_on"}


def night(**changes):
    return Window(**{"name": "night", "time_zone": "UTC", "opens": time(20), "closes": time(8)} | changes)


@pytest.mark.parametrize(
    ("window", "now", "expected"),
    [
        (night(), datetime(2026, 12, 1, 23, 0, tzinfo=UTC), ("open", "open until Wed 08:00")),
        (night(), datetime(2026, 12, 2, 3, 0, tzinfo=UTC), ("open", "open until 08:00")),
        (night(), datetime(2026, 12, 1, 12, 0, tzinfo=UTC), ("closed", "opens 20:00")),
        (night(weekdays="4"), datetime(2026, 12, 1, 12, 0, tzinfo=UTC), ("closed", "opens Fri 20:00")),
        (night(closes=time(20)), datetime(2026, 12, 1, 12, 0, tzinfo=UTC), ("open", "always open")),
        (night(weekdays=""), datetime(2026, 12, 1, 12, 0, tzinfo=UTC), ("closed", "never opens")),
    ],
)
def test_a_window_says_until_when_it_is_open_or_closed(window, now, expected):
    with timezone.override(UTC):
        assert standing(window, now) == expected


def test_the_times_are_the_readers(db):
    with timezone.override(ZoneInfo("Asia/Shanghai")):  # 20:00 in UTC is 04:00 of the next day there
        assert standing(night(), datetime(2026, 12, 1, 12, 0, tzinfo=UTC)) == ("closed", "opens Wed 04:00")


def test_a_new_window_starts_as_every_night_in_the_persons_time_zone(boss, browse):
    client = browse(boss)
    client.cookies["timezone"] = "Asia%2FShanghai"
    form = client.get(f"{LIST}add/").context["adminform"].form
    values = {name: form[name].value() for name in ("name", "time_zone", "weekdays", "at_end")}
    assert values == {"name": None, "time_zone": "Asia/Shanghai", "weekdays": list("0123456"), "at_end": "run_on"}
    assert 'value="20:00"' in str(form["opens"])
    assert 'value="08:00"' in str(form["closes"])


def test_chosen_weekdays_are_kept_in_order_and_shown_again(boss, browse):
    client = browse(boss)
    client.post(f"{LIST}add/", NIGHT | {"weekdays": ["4", "0"]})
    window = Window.objects.get()
    assert (window.weekdays, window.opens, window.closes) == ("04", time(20), time(8))
    form = client.get(f"{LIST}{window.pk}/change/").context["adminform"].form
    assert form["weekdays"].value() == ["0", "4"]
    assert "Mon Fri" in client.get(LIST).content.decode()


def test_a_window_needs_a_day_and_a_known_time_zone(boss, browse):
    form = browse(boss).post(f"{LIST}add/", NIGHT | {"time_zone": "Mars/Base"}).context["adminform"].form
    assert sorted(form.errors) == ["time_zone", "weekdays"]


def test_the_list_counts_the_jobs_that_wait_for_it(boss, job, browse):
    window = Window.objects.create(name="night", time_zone="UTC")
    Job.objects.filter(pk=job.pk).update(window=window)
    client = browse(boss)
    link = f"/admin/jobs/job/?window__id__exact={window.pk}"
    assert link in client.get(LIST).content.decode()
    assert [row.pk for row in client.get(link).context["cl"].result_list] == [job.pk]
    Job.objects.filter(pk=job.pk).update(status="completed")
    assert link not in client.get(LIST).content.decode()


def test_a_window_that_jobs_use_is_not_deleted(boss, job, browse):
    window = Window.objects.create(name="night", time_zone="UTC")
    Job.objects.filter(pk=job.pk).update(window=window)
    refused = browse(boss).post(f"{LIST}{window.pk}/delete/", {"post": "yes"})
    assert told(refused)[0].startswith("This window cannot be deleted: 1 job names it")
    assert Window.objects.exists()


def test_a_number_that_no_window_has_is_not_found(boss, browse):
    client = browse(boss)
    for number in ("9" * 30, "x"):
        assert client.get(f"{LIST}{number}/delete/").status_code == 404


def test_an_unused_window_is_deleted(boss, browse):
    window = Window.objects.create(name="night", time_zone="UTC")
    browse(boss).post(f"{LIST}{window.pk}/delete/", {"post": "yes"})
    assert not Window.objects.exists()


def test_who_sees_jobs_reads_windows_and_an_operator_sets_them(viewer, mei, stranger, browse):
    window = Window.objects.create(name="night", time_zone="UTC")
    page = f"{LIST}{window.pk}/change/"
    assert browse(stranger).get(LIST).status_code == 403
    for reader in (viewer, mei):
        client = browse(reader)
        assert (client.get(LIST).status_code, client.get(page).status_code) == (200, 200)
        assert (client.get(f"{LIST}add/").status_code, client.post(page, NIGHT).status_code) == (403, 403)
        assert client.post(f"{LIST}{window.pk}/delete/", {"post": "yes"}).status_code == 403
    assert "every day" in browse(viewer).get(page).content.decode()
    operator = member("operator", "view_job", "operate")
    browse(operator).post(page, NIGHT | {"weekdays": ["6"]})
    window.refresh_from_db()
    assert (window.time_zone, window.weekdays) == ("Europe/Berlin", "6")
