"""Workers and their devices."""

from django.contrib import admin
from django.db.models import Prefetch, QuerySet
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
        alive = set(alive_workers().values_list("pk", flat=True))
        request.alive_workers = alive
        self.alive = alive
        return super().get_queryset(request).prefetch_related(Prefetch("jobs", queryset=running, to_attr="running"))

    @display(description=gettext_lazy("state"), label={"alive": "success", "stopped": "default", "silent": "danger"})
    def state(self, worker: Worker) -> tuple[str, str]:
        return worker_state(worker, self.alive)

    @display(description=gettext_lazy("runs"))
    def runs(self, worker: Worker) -> str:
        return ", ".join(str(job) for job in worker.running)


def worker_state(worker: Worker, alive: set[int]) -> tuple[str, str]:
    """Return whether a worker lives: a word for the colour and one for the reader."""
    if worker.pk in alive:
        return "alive", _("alive")
    return ("stopped", _("stopped")) if worker.stopped_at else ("silent", _("silent"))
