"""Send running jobs back to the queue when the window in which they may run has closed."""

from datetime import datetime

from jobs.models import Job, Window
from jobs.services.lifecycle import request_yield
from jobs.services.windows import is_open


def yield_closed(now: datetime) -> int:
    """Ask the jobs of every closed window that requeues to save and wait for its next opening; return how many."""
    running = Job.objects.filter(status=Job.Status.RUNNING, window__at_end=Window.AtEnd.REQUEUE, yield_reason="")
    outside = [job for job in running.select_related("window") if job.window and not is_open(job.window, now)]
    return sum(request_yield(job, f"the window {job.window} closed") for job in outside)
