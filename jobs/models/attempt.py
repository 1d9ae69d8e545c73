"""An attempt: one execution of a job by one worker."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Attempt(models.Model):
    class Outcome(models.TextChoices):
        RUNNING = "running", _("Running")
        COMPLETED = "completed", _("Completed")
        FAILED = "failed", _("Failed")
        OUT_OF_MEMORY = "out_of_memory", _("Out of memory")
        TIMED_OUT = "timed_out", _("Timed out")
        CANCELLED = "cancelled", _("Cancelled")
        LOST = "lost", _("Lost")
        DRAINED = "drained", _("Back in the queue")

    job = models.ForeignKey("jobs.Job", models.CASCADE, related_name="attempts", verbose_name=_("job"))
    number = models.PositiveIntegerField(_("attempt"))
    token = models.UUIDField(unique=True, editable=False)
    worker = models.ForeignKey(
        "jobs.Worker", models.SET_NULL, null=True, related_name="attempts", verbose_name=_("worker")
    )
    device = models.ForeignKey(
        "jobs.Device", models.PROTECT, null=True, related_name="attempts", verbose_name=_("device")
    )
    devices = models.ManyToManyField("jobs.Device", related_name="+", verbose_name=_("devices"))
    device_count = models.PositiveSmallIntegerField(_("number of devices"), default=1)
    command = models.JSONField(_("command"), default=list)
    outcome = models.CharField(_("outcome"), max_length=16, choices=Outcome, default=Outcome.RUNNING)
    cause = models.CharField(_("cause"), max_length=500, blank=True)
    exit_code = models.IntegerField(_("exit code"), null=True)
    pid = models.PositiveIntegerField(_("process"), null=True)
    started_at = models.DateTimeField(_("started"))
    ended_at = models.DateTimeField(_("ended"), null=True)

    class Meta:
        verbose_name = _("attempt")
        verbose_name_plural = _("attempts")
        ordering = ("job_id", "number")
        constraints = (models.UniqueConstraint(fields=("job", "number"), name="attempt_number_once"),)

    def __str__(self) -> str:
        return f"{self.job_id}.{self.number}"
