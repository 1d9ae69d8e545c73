"""What a device does, in one word and in one sentence: the same on the first page, with the devices and the workers."""

from django.db.models import Exists, OuterRef, QuerySet
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import formats, timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from jobs.models import Device, Host, Job, Worker
from jobs.services.wake import alive_workers

COLOURS = {
    "free": "success",
    "busy": "primary",
    "drained": "warning",
    "paused": "warning",
    "silent": "danger",
    "gone": "default",
}


def devices_with_state() -> QuerySet[Device]:
    """Return every device with what ``device_state`` and ``device_note`` need, in one query."""
    alive = alive_workers().filter(device=OuterRef("pk"))
    silent = Worker.objects.filter(device=OuterRef("pk"), stopped_at=None)
    paused = Host.objects.filter(name=OuterRef("host")).exclude(paused_reason="")
    devices = Device.objects.annotate(served=Exists(alive), expected=Exists(silent), paused=Exists(paused))
    return devices.select_related("attempt__job__owner", "drained_by")


def device_state(device: Device) -> tuple[str, str]:
    """Return a word for the colour and one for the reader; the device is one of ``devices_with_state``."""
    if device.drained_at:
        return "drained", _("drained")
    if device.attempt:
        return "busy", _("busy")
    if vars(device)["served"]:
        return ("paused", _("host paused")) if vars(device)["paused"] else ("free", _("free"))
    return ("silent", _("worker is silent")) if vars(device)["expected"] else ("gone", _("no worker"))


def device_label(device: Device) -> SafeString:
    """Return the device's state as a coloured label."""
    word, text = device_state(device)
    return render_to_string("unfold/helpers/label.html", {"text": text, "type": COLOURS[word]})


def device_place(device: Device) -> str:
    """Return which of its host's devices it is."""
    return f"{device.get_kind_display()} {device.index}" if device.kind == Device.Kind.GPU else ""


def device_note(device: Device) -> str:
    """Return who drained a device, when and why; nothing for the others."""
    if not device.drained_at:
        return ""
    since = formats.date_format(timezone.localtime(device.drained_at), "Y-m-d H:i")
    who = device.drained_by.get_username() if device.drained_by else _("somebody")
    note = _("by %(who)s since %(since)s") % {"who": who, "since": since}
    return f"{note}: {device.drain_reason}" if device.drain_reason else note


def running_job(device: Device) -> Job | None:
    """Return the job that holds a device."""
    return device.attempt.job if device.attempt else None


def job_link(job: Job | None) -> SafeString | str:
    """Return a job as a link to its page."""
    if job is None:
        return ""
    link = '<span class="ns-reason"><a class="ns-link" href="{}">{}</a></span>'
    return format_html(link, reverse("admin:jobs_job_change", args=[job.pk]), job)
