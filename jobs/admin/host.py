"""Hosts: the disk that their run folders share, and what keeps the queue from starting anything there."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.decorators import display
from unfold.views import ChangeList

from jobs.admin.device_state import device_place
from jobs.admin.read_only import ReadOnlyAdmin
from jobs.models import Device, Host
from jobs.services.disk import gigabytes


class HostChangeList(ChangeList):
    """Knows the devices of the page's hosts."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        hosts: list[Host] = list(self.result_list)
        devices = list(Device.objects.filter(host__in=[host.name for host in hosts]))
        for host in hosts:
            vars(host)["devices"] = [device for device in devices if device.host == host.name]
        self.result_list: list[Host] = hosts


@admin.register(Host)
class HostAdmin(ReadOnlyAdmin):
    list_display = ("name", "state", "why_paused", "disk", "devices", "heard")
    fields = ("name", "state", "why_paused", "disk", "devices", "heard")
    readonly_fields = ("state", "why_paused", "disk", "devices", "heard")
    search_fields = ("name",)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[HostChangeList]:
        return HostChangeList

    @display(description=gettext_lazy("state"))
    def state(self, host: Host) -> SafeString:
        """Return whether the queue starts jobs there, as a coloured label."""
        text, colour = (_("paused"), "warning") if host.paused_reason else (_("open"), "success")
        return render_to_string("unfold/helpers/label.html", {"text": text, "type": colour})

    @display(description=gettext_lazy("why paused"))
    def why_paused(self, host: Host) -> SafeString | str:
        return format_html('<span class="ns-reason">{}</span>', host.paused_reason) if host.paused_reason else ""

    @display(description=gettext_lazy("disk"), ordering="disk_free")
    def disk(self, host: Host) -> SafeString | str:
        if not host.disk_total:
            return _("not measured yet")
        bar = '<progress max="{}" value="{}" aria-label="{}"></progress><br><span class="ns-nowrap">{}</span>'
        used = host.disk_total - host.disk_free
        text = _("%(free)s free of %(total)s") % {
            "free": gigabytes(host.disk_free),
            "total": gigabytes(host.disk_total),
        }
        return format_html(bar, host.disk_total, used, _("used"), text)

    @display(description=gettext_lazy("devices"))
    def devices(self, host: Host) -> SafeString | str:
        found = vars(host).get("devices") or Device.objects.filter(host=host.name)
        links = [
            (reverse("admin:jobs_device_change", args=[device.pk]), device.name, device_place(device))
            for device in found
        ]
        return format_html_join("", '<div class="ns-nowrap"><a class="ns-link" href="{}">{}</a> {}</div>', links)

    @display(description=gettext_lazy("last heard of"), ordering="seen_at")
    def heard(self, host: Host) -> SafeString:
        return render_to_string("jobs/moment.html", {"moment": host.seen_at})
