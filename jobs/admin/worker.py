"""Workers and their devices."""

from django.contrib import admin
from django.db.models import Exists, OuterRef, Prefetch, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.decorators import display

from jobs.admin.read_only import ReadOnlyAdmin
from jobs.models import Job, Worker
from jobs.services.wake import alive_workers


@admin.register(Worker)
class WorkerAdmin(ReadOnlyAdmin):
    list_display = ("name", "state", "runs", "device", "host", "pid", "heartbeat_at", "started_at", "stopped_at")
    list_filter = ("host",)
    search_fields = ("name", "host")
    list_select_related = ("device",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Worker]:
        running = Job.objects.filter(status=Job.Status.RUNNING)
        workers: QuerySet[Worker] = super().get_queryset(request)
        return workers.annotate(alive=Exists(alive_workers().filter(pk=OuterRef("pk")))).prefetch_related(
            Prefetch("jobs", queryset=running, to_attr="running")
        )

    @display(description=gettext_lazy("state"), label={"alive": "success", "stopped": "default", "silent": "danger"})
    def state(self, worker: Worker) -> tuple[str, str]:
        """Return whether a worker lives: a word for the colour and one for the reader."""
        if vars(worker)["alive"]:
            return "alive", _("alive")
        return ("stopped", _("stopped")) if worker.stopped_at else ("silent", _("silent"))

    @display(description=gettext_lazy("runs"))
    def runs(self, worker: Worker) -> str:
        return ", ".join(str(job) for job in vars(worker)["running"])
