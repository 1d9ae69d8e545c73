"""What a trainer's environment holds, and what it must not."""

from jobs.models import Device
from jobs.worker.environment import cores, trainer_environment

OURS = {
    "PATH": "/bin",
    "SECRET_KEY": "s",
    "DATABASE_URL": "d",
    "REDIS_URL": "r",
    "AWS_SECRET_ACCESS_KEY": "a",
    "NIGHTSHIFT_ALLOWED_ROOTS": "/data",
    "CUDA_VISIBLE_DEVICES": "0",
}


def of(device):
    return trainer_environment([device], home="/state", token="t1", environment=OURS)


def test_no_secret_is_passed_on():
    environment = of(Device(key="cpu:here", kind="cpu"))
    assert {name for name in environment if name in OURS} == {
        "PATH",
        "NIGHTSHIFT_ALLOWED_ROOTS",
        "CUDA_VISIBLE_DEVICES",
    }
    assert environment["NIGHTSHIFT_HOME"] == "/state"


def test_a_gpu_is_pinned_by_its_uuid():
    environment = of(Device(key="GPU-1234", kind="gpu"))
    assert (environment["CUDA_VISIBLE_DEVICES"], environment["CUDA_DEVICE_ORDER"]) == ("GPU-1234", "PCI_BUS_ID")


def test_a_cpu_worker_hides_the_gpus_and_uses_every_core():
    environment = of(Device(key="cpu:here", kind="cpu"))
    assert (environment["CUDA_VISIBLE_DEVICES"], environment["OMP_NUM_THREADS"]) == ("", str(cores()))


def test_what_the_image_was_built_from_reaches_the_record_of_the_run():
    device = Device(kind=Device.Kind.CPU, key="cpu:here")
    passed = trainer_environment([device], home="/home", token="t", environment={"NIGHTSHIFT_REVISION": "v1"})
    assert passed["NIGHTSHIFT_REVISION"] == "v1"
