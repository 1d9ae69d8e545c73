"""What a trainer's environment holds: what it needs to compute, and no secret."""

import os
from collections.abc import Mapping, Sequence

from jobs.models import Device
from jobs.worker.guard import COOKIE

SYSTEM = ("PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "LD_PRELOAD")
LIBRARIES = ("OMP_NUM_THREADS", "HF_HOME", "XDG_CACHE_HOME", "TRITON_CACHE_DIR", "WANDB_MODE", "SWANLAB_MODE")
OPERATOR = ("NIGHTSHIFT_ALLOWED_ROOTS", "NIGHTSHIFT_TRUST_REMOTE_CODE", "NIGHTSHIFT_REVISION")
PASSED_ON = frozenset((*SYSTEM, *LIBRARIES, *OPERATOR))
PASSED_ON_PREFIXES = ("LC_", "NVIDIA_", "NCCL_", "MKL_", "TORCHINDUCTOR_", "PYTORCH_")


def passed_on(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the part of an environment that a program of ours gets which computes for people."""
    return {
        name: value for name, value in environment.items() if name in PASSED_ON or name.startswith(PASSED_ON_PREFIXES)
    }


def trainer_environment(
    devices: Sequence[Device], *, home: str, token: str, environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the environment of a trainer that sees exactly ``devices``, in this order."""
    passed = passed_on(environment)
    gpus = [device.key for device in devices if device.kind == Device.Kind.GPU]
    if not gpus:
        passed.setdefault("OMP_NUM_THREADS", str(cores()))
    return passed | {
        "NIGHTSHIFT_HOME": home,
        "NIGHTSHIFT_PUMPED": "1",
        COOKIE: token,
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": ",".join(gpus),
        "PYTHONUNBUFFERED": "1",
        "HF_HUB_OFFLINE": "1",
    }


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
