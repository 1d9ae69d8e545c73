"""Devices: what runs on each, their labels, and taking one out of the queue's hands and giving it back."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import URLPattern, path
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from jobs.admin.device_actions import drain, resume
from jobs.admin.device_state import device_label, device_note, device_place, devices_with_state, job_link, running_job
from jobs.admin.operated import OperatedAdmin
from jobs.admin.permissions import may_operate
from jobs.models import Device

GIB = 2**30


@admin.register(Device)
class DeviceAdmin(OperatedAdmin):
    list_display = ("device", "state", "note", "runs", "memory", "all_labels")
    list_filter = ("host", "kind")
    list_note = _("A worker that starts brings its device along. Nothing new starts on a drained one.")
    change_form_outer_before_template = "jobs/device_state.html"
    search_fields = ("name", "host", "key", "labels")
    fields = ("state", "note", "runs", ("name", "host"), ("number", "memory"), "identity", "labels")
    readonly_fields = ("state", "note", "runs", "name", "host", "number", "memory", "identity")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False  # a worker that starts writes its own

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False  # the record of what ran on it names it

    def get_queryset(self, request: HttpRequest) -> QuerySet[Device]:
        return devices_with_state()

    def save_model(self, request: HttpRequest, obj: Device, form: Any, change: bool) -> None:
        """Write the labels alone: since the row was read a job may have started on it, or ended."""
        obj.save(update_fields=["labels"])

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        return (*self.list_display, "row_actions") if may_operate(request.user) else self.list_display

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        pages = [
            path("<int:object_id>/drain/", view(drain), name="jobs_device_drain"),
            path("<int:object_id>/resume/", view(resume), name="jobs_device_resume"),
        ]
        return [*pages, *super().get_urls()]

    @display(description=_("device"), ordering="name", header=True)
    def device(self, device: Device) -> tuple[str, str]:
        return device.name, " · ".join(filter(None, (device.host, device_place(device))))

    @display(description=_("state"))
    def state(self, device: Device) -> SafeString:
        return device_label(device)

    @display(description=_("drained"), ordering="drained_at")
    def note(self, device: Device) -> SafeString | str:
        return format_html('<span class="ns-reason">{}</span>', note) if (note := device_note(device)) else ""

    @display(description=_("runs"))
    def runs(self, device: Device) -> SafeString | str:
        return job_link(running_job(device))

    @display(description=_("number"))
    def number(self, device: Device) -> str:
        return f"{device.get_kind_display()} {device.index}"

    @display(description=_("key"))
    def identity(self, device: Device) -> str:
        return device.key

    @display(description=_("memory"), ordering="memory_bytes")
    def memory(self, device: Device) -> SafeString | str:
        text = f"{device.memory_bytes / GIB:.0f} GiB" if device.memory_bytes else ""
        return format_html('<span class="ns-nowrap">{}</span>', text) if text else ""

    @display(description=_("labels"))
    def all_labels(self, device: Device) -> SafeString:
        return format_html_join(" ", "<code>{}</code>", [(label,) for label in sorted(device.all_labels)])

    @display(description="")
    def row_actions(self, device: Device) -> SafeString:
        return render_to_string("jobs/device_actions.html", {"device": device})
