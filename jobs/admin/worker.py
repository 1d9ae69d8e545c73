"""Workers, and what their devices do."""

from django.contrib import admin
from django.db.models import Exists, OuterRef, Prefetch, QuerySet
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.decorators import display

from jobs.admin.device_state import device_label, device_note, device_place, devices_with_state, job_link, running_job
from jobs.admin.permissions import may_operate
from jobs.admin.read_only import ReadOnlyAdmin
from jobs.models import Worker
from jobs.services.wake import alive_workers


@admin.register(Worker)
class WorkerAdmin(ReadOnlyAdmin):
    list_display = ("name", "state", "on_device", "device_state", "runs", "heard")
    list_filter = ("host",)
    search_fields = ("name", "host")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Worker]:
        workers: QuerySet[Worker] = super().get_queryset(request)
        return workers.annotate(alive=Exists(alive_workers().filter(pk=OuterRef("pk")))).prefetch_related(
            Prefetch("device", queryset=devices_with_state())
        )

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        return (*self.list_display, "device_actions") if may_operate(request.user) else self.list_display

    @display(description=gettext_lazy("state"), label={"alive": "success", "stopped": "default", "silent": "danger"})
    def state(self, worker: Worker) -> tuple[str, str]:
        """Return whether a worker lives: a word for the colour and one for the reader."""
        if vars(worker)["alive"]:
            return "alive", _("alive")
        return ("stopped", _("stopped")) if worker.stopped_at else ("silent", _("silent"))

    @display(description=gettext_lazy("device"), ordering="device__name")
    def on_device(self, worker: Worker) -> SafeString:
        url = reverse("admin:jobs_device_change", args=[worker.device_id])
        link = '<a class="ns-link ns-nowrap" href="{}">{}</a><br><span class="ns-small">{}</span>'
        return format_html(link, url, worker.device.name, device_note(worker.device) or device_place(worker.device))

    @display(description=gettext_lazy("device state"))
    def device_state(self, worker: Worker) -> SafeString:
        return device_label(worker.device)

    @display(description=gettext_lazy("runs"))
    def runs(self, worker: Worker) -> SafeString | str:
        return job_link(running_job(worker.device))

    @display(description=gettext_lazy("last heard of"), ordering="heartbeat_at")
    def heard(self, worker: Worker) -> SafeString:
        return render_to_string("jobs/moment.html", {"moment": worker.heartbeat_at})

    @display(description="")
    def device_actions(self, worker: Worker) -> SafeString:
        return render_to_string("jobs/device_actions.html", {"device": worker.device})
