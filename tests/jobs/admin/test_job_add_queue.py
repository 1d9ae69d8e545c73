"""The fields of the queue's rules in the form of a job."""

from datetime import time

import pytest
from django.contrib.auth.models import Permission

from jobs.models import Device, Job, Limit, Window, Worker
from tests.jobs.admin.conftest import ADD, errors_of, member, posted, told


@pytest.fixture
def nights(db):
    return Window.objects.create(name="nights", time_zone="UTC", opens=time(20), closes=time(8))


@pytest.fixture
def two_gpus(db):
    for index in range(2):
        values = {"kind": "gpu", "host": "rack", "name": "H200", "index": index, "memory_bytes": 80 * 2**30}
        device = Device.objects.create(key=f"GPU-{index}", **values)
        Worker.objects.create(name=f"gpu{index}@rack", host="rack", device=device, queue="q")


def asked(job):
    return job.priority, job.device_request, job.device_label, job.device_count, job.window, job.time_limit


def test_every_wish_reaches_the_job(mei, browse, nights, two_gpus):
    wishes = {"device": "label:80g", "device_count": "2", "window": str(nights.pk), "time_limit": "480"}
    browse(mei).post(ADD, posted(**wishes, priority="-1"))
    job = Job.objects.get()
    assert asked(job) == (-1, "label", "80g", 2, nights, 480)
    assert "--processes 2" in " ".join(job.command)


def test_what_is_left_out_is_one_device_at_normal_priority_without_limits(mei, browse):
    browse(mei).post(ADD, posted(device_count="", priority="", window="", time_limit=""))
    assert asked(Job.objects.get()) == (0, "any", "", 1, None, None)


def test_the_preview_shows_the_command_of_several_devices(mei, browse, two_gpus):
    client, typed = browse(mei), posted(device="gpu", device_count="2")
    preview = client.post("/admin/jobs/job/preview/", typed).json()
    client.post(ADD, typed)
    job = Job.objects.get()
    assert preview["command"].replace("runs/N", f"runs/{job.pk}") == " ".join(job.command)


def test_a_clone_asks_for_the_same(mei, browse, nights, two_gpus):
    client = browse(mei)
    wishes = {"device": "label:80g", "device_count": "2", "window": str(nights.pk), "time_limit": "480"}
    client.post(ADD, posted(**wishes, priority="-1"))
    form = client.get(ADD, {"clone": Job.objects.get().pk}).context["form"]
    names = ("device", "device_count", "window", "time_limit", "priority")
    assert [form[name].value() for name in names] == ["label:80g", 2, nights.pk, 480, -1]


def test_another_type_keeps_the_wishes(mei, browse, nights):
    typed = posted(training_type="grpo", time_limit="30", priority="-1", window=str(nights.pk), device_count="3")
    form = browse(mei).post(ADD, {**typed, "_reload": "1"}).context["form"]
    values = [form[name].value() for name in ("time_limit", "priority", "window", "device_count")]
    assert values == ["30", "-1", str(nights.pk), "3"]


def test_high_priority_is_offered_only_to_who_may_and_refused_to_others_at_its_field(mei, browse):
    client = browse(mei)
    assert ">High<" not in client.get(ADD).content.decode()
    errors = errors_of(client.post(ADD, posted(priority="1")))
    assert errors["priority"][0].startswith("mei may not queue at high priority")
    mei.user_permissions.add(Permission.objects.get(codename="high_priority"))
    assert ">High<" in client.get(ADD).content.decode()
    client.post(ADD, posted(priority="1"))
    assert Job.objects.get().priority == 1


def test_a_clone_of_a_high_job_is_normal_for_who_may_not_queue_high(mei, browse, job):
    Job.objects.filter(pk=job.pk).update(priority=1)
    urgent = member("urgent", "view_job", "add_job", "high_priority")
    for person, priority in ((mei, 0), (urgent, 1)):
        assert browse(person).get(ADD, {"clone": job.pk}).context["form"]["priority"].value() == priority


def test_more_devices_than_any_host_has_are_a_warning_that_can_be_confirmed(mei, browse, two_gpus):
    client = browse(mei)
    form = client.post(ADD, posted(device="gpu", device_count="4")).context["form"]
    assert form.warnings == {"device_count": "no host has 4 such devices with a worker; the most is 2"}
    assert Job.objects.count() == 0
    client.post(ADD, posted(device="gpu", device_count="4", queue_anyway="on"))
    assert Job.objects.get().device_count == 4


def test_devices_of_two_hosts_do_not_add_up(mei, browse, two_gpus):
    Device.objects.filter(index=1).update(host="other")
    form = browse(mei).post(ADD, posted(device="gpu", device_count="2")).context["form"]
    assert form.warnings == {"device_count": "no host has 2 such devices with a worker; the most is 1"}


def test_a_label_that_only_a_device_without_worker_has_is_disabled(mei, browse):
    Device.objects.create(key="GPU-9", kind="gpu", host="rack", name="H200", labels="fast")
    client = browse(mei)
    assert '<option value="label:fast" disabled' in " ".join(client.get(ADD).content.decode().split())
    assert errors_of(client.post(ADD, posted(device="label:fast")))["device"] == [
        "no registered worker serves such a device"
    ]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("time_limit", "0"),
        ("time_limit", "527041"),
        ("time_limit", "soon"),
        ("device_count", "0"),
        ("device_count", "129"),
        ("device", "label:unheard-of"),
        ("window", "99"),
        ("priority", "7"),
    ],
)
def test_a_wrong_wish_stands_at_its_field(field, value, mei, browse):
    assert list(errors_of(browse(mei).post(ADD, posted(**{field: value})))) == [field]
    assert Job.objects.count() == 0


def test_a_full_limit_is_said_on_top_of_the_form(mei, browse, job):
    Limit.objects.create(person=mei, max_queued=1)
    response = browse(mei).post(ADD, posted())
    limit = "mei's limit of waiting jobs is 1 and reached: wait until one starts, or cancel one"
    assert errors_of(response) == {"__all__": [limit]}
    assert told(response) == []


def test_a_clone_shows_the_label_that_no_device_has_any_more(mei, browse, job):
    Job.objects.filter(pk=job.pk).update(device_request="label", device_label="gone")
    page = browse(mei).get(ADD, {"clone": job.pk}).content.decode()
    assert '<option value="label:gone" selected disabled' in " ".join(page.split())
