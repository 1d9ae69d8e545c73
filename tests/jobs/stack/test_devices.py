"""Which devices a host has, and the worker of each."""

import json

import pytest

from jobs.stack.devices import (
    FoundDevice,
    WrongDevices,
    configured_devices,
    cpu_device,
    find_devices,
    worker_command,
)

GPU = {"key": "GPU-12", "kind": "gpu", "host": "box", "name": "H200", "index": 1, "memory_bytes": 141}


def test_configured_devices_stand_for_those_found(monkeypatch):
    monkeypatch.setenv("NIGHTSHIFT_DEVICES", json.dumps([GPU]))
    assert find_devices() == [FoundDevice(**GPU)]


def test_without_a_driver_the_cpu_is_the_device(monkeypatch):
    monkeypatch.delenv("NIGHTSHIFT_DEVICES", raising=False)
    monkeypatch.setattr("jobs.stack.devices.nvml_devices", list)
    [device] = find_devices()
    assert (device.kind, device.key) == ("cpu", f"cpu:{device.host}")
    assert device.worker_name == f"cpu@{device.host}"


def test_a_worker_serves_one_device_and_hears_only_its_own_queue():
    argv, env = worker_command(FoundDevice(**GPU))
    assert argv[1:6] == ["-m", "celery", "-A", "webadmin", "worker"]
    assert " ".join(argv).endswith("-n gpu1@box -Q nightshift.gpu1@box")
    assert "-P prefork -c 1 --without-gossip --without-mingle" in " ".join(argv)
    assert FoundDevice.of_worker(env) == FoundDevice(**GPU)


def test_a_worker_started_by_hand_serves_the_cpu():
    assert FoundDevice.of_worker({}).kind == "cpu"


def test_an_operator_names_this_machine_and_its_devices_labels(monkeypatch):
    monkeypatch.setenv("NIGHTSHIFT_HOST", "box-2")
    monkeypatch.setenv("NIGHTSHIFT_DEVICES", '[{"key": "GPU-1", "kind": "gpu", "name": "H200", "labels": "fast 141g"}]')
    [device] = find_devices()
    assert (device.worker_name, device.labels) == ("gpu0@box-2", "fast 141g")
    assert cpu_device().key == "cpu:box-2"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("four GPUs", "Invalid JSON"),
        ("[]", "the list is empty"),
        ('[{"key": "GPU-1", "kind": "tpu", "name": "x"}]', "kind of 0: Input should be 'gpu' or 'cpu'"),
        ('[{"key": "GPU-1", "kind": "gpu", "name": "x", "color": 1}]', "color of 0: Extra inputs are not permitted"),
        (
            '[{"key": "a", "kind": "gpu", "name": "x"}, {"key": "b", "kind": "gpu", "name": "x"}]',
            "gpu0@box is there twice",
        ),
        ('[{"key": "a,b", "kind": "gpu", "name": "x"}]', "key of 0"),
        ('[{"key": "a", "kind": "gpu", "name": "x\\u0000"}]', "name of 0"),
        ('[{"key": "a", "kind": "gpu", "name": "x", "labels": "a\\u0000"}]', "labels of 0"),
        ('[{"key": "a", "kind": "gpu", "name": "x", "index": 3000000000}]', "index of 0"),
        ('[{"key": "a", "kind": "gpu", "name": "x", "memory_bytes": 10000000000000000000}]', "memory_bytes of 0"),
    ],
)
def test_a_list_of_devices_that_cannot_be_used_is_one_line_that_names_the_fault(monkeypatch, text, fault):
    monkeypatch.setenv("NIGHTSHIFT_HOST", "box")
    with pytest.raises(WrongDevices) as refused:
        configured_devices(text)
    assert str(refused.value).startswith("NIGHTSHIFT_DEVICES cannot be used: ")
    assert fault in str(refused.value)
    assert "\n" not in str(refused.value)
