"""The devices of this host, and the worker that serves each of them."""

import json
import os
import socket
import sys
from collections.abc import Mapping
from typing import Self

import psutil
from pydantic import BaseModel, ConfigDict, TypeAdapter

CONFIGURED = "NIGHTSHIFT_DEVICES"  # a JSON list of devices instead of those found
PINNED = "NIGHTSHIFT_DEVICE"  # the one device of a worker, as JSON
CONCURRENCY = ("-P", "prefork", "-c", "1", "--without-gossip", "--without-mingle", "-l", "info")


class FoundDevice(BaseModel):
    """One device as a worker and the admin name it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    kind: str
    host: str
    name: str
    index: int = 0
    memory_bytes: int = 0

    @property
    def worker_name(self) -> str:
        """The Celery node name of the worker that serves this device."""
        return f"{self.kind}{self.index if self.kind == 'gpu' else ''}@{self.host}"

    @property
    def queue(self) -> str:
        """The queue of that worker alone, so that a wake-up reaches the one it is meant for."""
        return f"nightshift.{self.worker_name}"

    @classmethod
    def of_worker(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Return the device this worker was started for; started by hand, it serves the CPU."""
        if text := environment.get(PINNED):
            return cls.model_validate_json(text)
        return cls.model_validate(cpu_device().model_dump())


def find_devices() -> list[FoundDevice]:
    """Return the configured devices, else every GPU that the driver names, else the CPU."""
    if text := os.environ.get(CONFIGURED):
        return TypeAdapter(list[FoundDevice]).validate_json(text)
    return nvml_devices() or [cpu_device()]


def nvml_devices() -> list[FoundDevice]:
    """Return the GPUs of this host; none without a driver. Asks NVML, so that nothing here opens a CUDA context."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        return [_gpu(index) for index in range(pynvml.nvmlDeviceGetCount())]
    finally:
        pynvml.nvmlShutdown()


def cpu_device() -> FoundDevice:
    """Return this host's CPU as a device."""
    host = socket.gethostname()
    name = f"CPU, {len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()} cores"
    memory = psutil.virtual_memory().total
    return FoundDevice(key=f"cpu:{host}", kind="cpu", host=host, name=name, memory_bytes=memory)


def worker_command(device: FoundDevice) -> tuple[list[str], dict[str, str]]:
    """Return the command of the device's worker and what its environment needs on top."""
    where = ["-n", device.worker_name, "-Q", device.queue]
    argv = [sys.executable, "-m", "celery", "-A", "webadmin", "worker", *CONCURRENCY, *where]
    return argv, {PINNED: json.dumps(device.model_dump())}


def _gpu(index: int) -> FoundDevice:
    import pynvml

    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    return FoundDevice(
        key=_text(pynvml.nvmlDeviceGetUUID(handle)),
        kind="gpu",
        host=socket.gethostname(),
        name=_text(pynvml.nvmlDeviceGetName(handle)),
        index=index,
        memory_bytes=int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
    )


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
