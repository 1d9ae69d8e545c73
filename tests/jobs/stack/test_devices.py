"""Which devices a host has, and the worker of each."""

import json

from jobs.stack.devices import FoundDevice, find_devices, worker_command

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
