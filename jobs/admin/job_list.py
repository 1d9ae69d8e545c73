"""The list of jobs: what its rows need, read for all of them at once."""

from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.views import ChangeList

from jobs.models import Job
from jobs.services.reasons import waiting_reasons


class JobChangeList(ChangeList):
    """Knows why each waiting job of the page waits, in a number of queries that does not grow with the rows."""

    def get_queryset(self, request: HttpRequest, exclude_parameters: list[str | None] | None = None) -> QuerySet[Job]:
        jobs: QuerySet[Job] = super().get_queryset(request, exclude_parameters)
        return jobs.prefetch_related("attempts__device")

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        jobs: list[Job] = list(self.result_list)
        reasons = waiting_reasons(jobs)
        for job in jobs:
            vars(job)["reason"] = reasons.get(job.pk, job.cause)
        self.result_list: list[Job] = jobs
