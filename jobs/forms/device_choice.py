"""The devices a job may ask for; those that no registered worker serves are disabled and say why."""

from collections import Counter
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from unfold.widgets import UnfoldAdminSelectWidget

from jobs.models import Device, Job
from jobs.services.placement import Ask, Slot, suits

Request = Job.DeviceRequest
NAMED, LABEL = "device:", "label:"


class DeviceSelect(UnfoldAdminSelectWidget):
    """A select whose options may be disabled."""

    disabled: frozenset[str] = frozenset()

    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        option: dict[str, Any] = super().create_option(name, value, *args, **kwargs)
        if str(value) in self.disabled:
            option["attrs"]["disabled"] = True
        return option


def device_choices(asked: str = "") -> tuple[list[tuple[str, str]], dict[str, str]]:
    """Return the choices, with the one that a job ``asked`` for, and why each is out of reach that is."""
    devices = list(Device.objects.prefetch_related("workers"))
    served = [device for device in devices if device.workers.all()]
    reasons = _kinds_that_nobody_serves(devices, {device.kind for device in served})
    usable = {label for device in served for label in device.all_labels}
    labels = usable.union(*(device.all_labels for device in devices))
    if asked.startswith(LABEL):
        labels |= {asked.removeprefix(LABEL)}
    reasons |= {f"{LABEL}{label}": _("no registered worker serves such a device") for label in labels - usable}
    reasons |= {
        f"{NAMED}{device.pk}": _("no worker is registered for it") for device in devices if device not in served
    }
    choices = [(kind.value, str(kind.label)) for kind in (Request.ANY, Request.GPU, Request.CPU)]
    choices += [(f"{LABEL}{label}", _("A device labelled %(label)s") % {"label": label}) for label in sorted(labels)]
    choices += [(f"{NAMED}{device.pk}", str(device)) for device in devices]
    return [(value, f"{text}: {reasons[value]}" if value in reasons else text) for value, text in choices], reasons


def requested_device(value: str) -> tuple[Job.DeviceRequest, Device | None, str]:
    """Return what a choice stands for: the request, and the device or the label that it names."""
    if value.startswith(NAMED):
        return Request.NAMED, Device.objects.get(pk=value.removeprefix(NAMED)), ""
    if value.startswith(LABEL):
        return Request.LABEL, None, value.removeprefix(LABEL)
    return Job.DeviceRequest(value), None, ""


def device_value(job: Job) -> str:
    """Return the choice that stands for what a job asked for."""
    if job.device_label:
        return f"{LABEL}{job.device_label}"
    return f"{NAMED}{job.device_id}" if job.device_id else job.device_request


def most_together(value: str) -> int:
    """Return how many of the devices that a choice stands for one host can give to one job."""
    request, named, label = requested_device(value)
    ask = Ask(
        job=0, owner=0, queued_at=timezone.now(), request=request, device=named.pk if named else None, label=label
    )
    return max(Counter((slot.host, slot.kind) for slot in _slots() if suits(ask, slot)).values(), default=0)


def _slots() -> list[Slot]:
    devices = Device.objects.filter(workers__isnull=False).distinct()
    return [Slot(device=d.pk, host=d.host, kind=d.kind, labels=d.all_labels) for d in devices]


def _kinds_that_nobody_serves(devices: list[Device], served: set[str]) -> dict[str, str]:
    reasons = {}
    if Device.Kind.GPU not in served:
        reasons[Request.GPU.value] = _("no registered worker serves a GPU")
    if Device.Kind.CPU not in served and devices:
        reasons[Request.CPU.value] = _("no registered worker serves the CPU")
    return reasons
