"""The pages of hosts."""

import pytest

from jobs.models import Device, Host

LIST = "/admin/jobs/host/"


@pytest.fixture
def host(db):
    Device.objects.create(key="cpu:a", kind="cpu", host="a", name="Epyc")
    Device.objects.create(key="cpu:b", kind="cpu", host="b", name="Xeon")
    return Host.objects.create(name="a", disk_free=1_100_000_000, disk_total=500_000_000_000, paused_reason="too full")


@pytest.mark.parametrize("page", ["", "change/"])
def test_a_host_shows_its_disk_why_it_is_paused_and_its_devices(viewer, host, browse, page):
    text = browse(viewer).get(f"{LIST}{host.pk}/{page}" if page else LIST).content.decode()
    for expected in ("1.1 GB free of 500.0 GB", "too full", "Epyc"):
        assert expected in text
    assert "Xeon" not in text


def test_a_host_that_was_not_measured_says_so(viewer, browse):
    Host.objects.create(name="new")
    assert "not measured yet" in browse(viewer).get(LIST).content.decode()


def test_hosts_are_read_only_and_hidden_from_who_sees_no_jobs(boss, stranger, host, browse):
    client = browse(boss)
    assert client.get(f"{LIST}add/").status_code == 403
    assert client.post(f"{LIST}{host.pk}/change/", {"name": "b"}).status_code == 403
    assert client.post(f"{LIST}{host.pk}/delete/", {"post": "yes"}).status_code == 403
    assert browse(stranger).get(LIST).status_code == 403
