"""Send running jobs back to the queue when the window in which they may run has closed."""

from datetime import datetime

from jobs.models import Job, Window
from jobs.services.lifecycle import request_yield
from jobs.services.windows import is_open, zone_of


def yield_closed(now: datetime) -> int:
    """Ask the jobs of every closed window that requeues to save and wait for its next opening; return how many.

    Of a window whose time zone is not known here nobody can tell, and what runs is left alone.
    """
    running = Job.objects.filter(status=Job.Status.RUNNING, window__at_end=Window.AtEnd.REQUEUE, yield_reason="")
    known = [(job, job.window) for job in running.select_related("window") if job.window and zone_of(job.window)]
    closed = [(job, window) for job, window in known if not is_open(window, now)]
    return sum(request_yield(job, f"the window {window} closed") for job, window in closed)
