"""The devices a job may ask for; those that no registered worker serves are disabled and say why."""

from typing import Any

from django.utils.translation import gettext as _
from unfold.widgets import UnfoldAdminSelectWidget

from jobs.models import Device, Job

NAMED = "device:"


class DeviceSelect(UnfoldAdminSelectWidget):
    """A select whose options may be disabled."""

    disabled: frozenset[str] = frozenset()

    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        option: dict[str, Any] = super().create_option(name, value, *args, **kwargs)
        if str(value) in self.disabled:
            option["attrs"]["disabled"] = True
        return option


def device_choices() -> tuple[list[tuple[str, str]], dict[str, str]]:
    """Return the choices, and the reason of each that cannot be chosen."""
    devices = list(Device.objects.prefetch_related("workers"))
    served = {device.kind for device in devices if device.workers.all()}
    reasons = {}
    if Device.Kind.GPU not in served:
        reasons[Job.DeviceRequest.GPU.value] = _("no registered worker serves a GPU")
    if Device.Kind.CPU not in served and devices:
        reasons[Job.DeviceRequest.CPU.value] = _("no registered worker serves the CPU")
    for device in devices:
        if not device.workers.all():
            reasons[f"{NAMED}{device.pk}"] = _("no worker is registered for it")
    labels = [(kind.value, str(kind.label)) for kind in Job.DeviceRequest if kind is not Job.DeviceRequest.NAMED]
    labels += [(f"{NAMED}{device.pk}", str(device)) for device in devices]
    return [(value, f"{label}: {reasons[value]}" if value in reasons else label) for value, label in labels], reasons


def requested_device(value: str) -> tuple[Job.DeviceRequest, Device | None]:
    """Return what a choice stands for."""
    if value.startswith(NAMED):
        return Job.DeviceRequest.NAMED, Device.objects.get(pk=value.removeprefix(NAMED))
    return Job.DeviceRequest(value), None


def device_value(job: Job) -> str:
    """Return the choice that stands for what a job asked for."""
    return f"{NAMED}{job.device_id}" if job.device_id else job.device_request
