"""The values of one logged step."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Metric(models.Model):
    job = models.ForeignKey("jobs.Job", models.CASCADE, related_name="metrics", verbose_name=_("job"))
    step = models.PositiveIntegerField(_("step"))
    time = models.DateTimeField(_("time"))
    values = models.JSONField(_("values"))

    class Meta:
        verbose_name = _("metric")
        verbose_name_plural = _("metrics")
        ordering = ("job_id", "step")
        constraints = (models.UniqueConstraint(fields=("job", "step"), name="metric_step_once"),)

    def __str__(self) -> str:
        return f"{self.job_id} @ {self.step}"
