"""A host's identity, and what a worker that registers writes of it."""

import pytest

from jobs.models import Device, Host
from jobs.services.hosts import home_id, touch_host
from jobs.stack.devices import FoundDevice
from jobs.worker.presence import register_worker

pytestmark = pytest.mark.django_db
GPU = FoundDevice(key="GPU-1", kind="gpu", host="box", name="H200")


def test_a_state_folder_keeps_its_identity_and_another_has_another(settings, tmp_path):
    identities = []
    for name in ("a", "b", "a"):
        settings.NIGHTSHIFT_HOME = tmp_path / name
        settings.NIGHTSHIFT_HOME.mkdir(exist_ok=True)
        identities.append(home_id())
    assert identities[0] == identities[2] != identities[1]
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["home-id"]


def test_hosts_on_one_state_folder_have_one_home():
    touch_host("box-1")
    touch_host("box-2")
    assert set(Host.objects.values_list("name", "home")) == {("box-1", home_id()), ("box-2", home_id())}


def test_a_worker_that_registers_brings_its_device_and_its_host():
    worker = register_worker("gpu0@box", GPU)
    assert (worker.device.name, worker.host, Host.objects.get().home) == ("H200", "box", home_id())


def test_labels_that_an_operator_wrote_stay_unless_the_list_of_devices_names_some():
    register_worker("gpu0@box", GPU)
    Device.objects.update(labels="quiet")
    register_worker("gpu0@box", GPU)
    assert Device.objects.get().labels == "quiet"
    register_worker("gpu0@box", GPU.model_copy(update={"labels": "fast"}))
    assert Device.objects.get().labels == "fast"
