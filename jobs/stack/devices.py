"""The devices of this host, and the worker that serves each of them."""

import json
import os
import socket
import sys
from collections.abc import Mapping
from typing import Literal, Self

import psutil
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

CONFIGURED = "NIGHTSHIFT_DEVICES"  # a JSON list of devices instead of those found
PINNED = "NIGHTSHIFT_DEVICE"  # the one device of a worker, as JSON
HOST = "NIGHTSHIFT_HOST"  # this machine's name in the admin instead of its own
CONCURRENCY = ("-P", "prefork", "-c", "1", "--without-gossip", "--without-mingle", "-l", "info")


class WrongDevices(ValueError):
    """An operator has to change ``NIGHTSHIFT_DEVICES``; the message says how."""


def host_name() -> str:
    """Return the name under which the admin knows this machine."""
    return os.environ.get(HOST) or socket.gethostname()


class FoundDevice(BaseModel):
    """One device as a worker and the admin name it, whoever found it: the driver or an operator's list."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str = Field(pattern=r"^[A-Za-z0-9:._-]{1,120}$")
    kind: Literal["gpu", "cpu"]
    host: str = Field(default_factory=host_name, pattern=r"^[A-Za-z0-9._-]{1,120}$")
    name: str = Field(pattern=r"^[^\x00-\x1f]{1,120}$")
    index: int = Field(default=0, ge=0, lt=2**31)
    memory_bytes: int = Field(default=0, ge=0, lt=2**63)
    labels: str = Field(default="", pattern=r"^[^\x00-\x1f]{0,200}$")  # separated by spaces

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
    """Return the configured devices, else every GPU that the driver names, else the CPU.

    Raises:
        WrongDevices: the configured list cannot be used.
    """
    if text := os.environ.get(CONFIGURED):
        return configured_devices(text)
    return nvml_devices() or [cpu_device()]


def configured_devices(text: str) -> list[FoundDevice]:
    """Return the devices of a JSON list. Two of one key, or of one worker's name, would be the same device.

    Raises:
        WrongDevices: it is no list of devices; the message names the first fault.
    """
    try:
        devices = TypeAdapter(list[FoundDevice]).validate_json(text)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        where = " of ".join(str(part) for part in reversed(fault["loc"]))
        raise WrongDevices(f"{CONFIGURED} cannot be used: {where}: {fault['msg']}".replace(": :", ":")) from None
    for names in ([device.key for device in devices], [device.worker_name for device in devices]):
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise WrongDevices(f"{CONFIGURED} cannot be used: {twice} is there twice; give each its own key and index")
    if not devices:
        raise WrongDevices(f"{CONFIGURED} cannot be used: the list is empty")
    return devices


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
    host = host_name()
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
        host=host_name(),
        name=_text(pynvml.nvmlDeviceGetName(handle)),
        index=index,
        memory_bytes=int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
    )


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
