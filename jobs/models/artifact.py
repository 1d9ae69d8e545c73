"""A file of a run that can be downloaded."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Artifact(models.Model):
    job = models.ForeignKey("jobs.Job", models.CASCADE, related_name="artifacts", verbose_name=_("job"))
    path = models.CharField(
        _("path"), max_length=255, help_text=_("Within the run folder, such as model/model.safetensors.")
    )
    size = models.BigIntegerField(_("size"))
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("artifact")
        verbose_name_plural = _("artifacts")
        ordering = ("job_id", "path")
        constraints = (models.UniqueConstraint(fields=("job", "path"), name="artifact_once"),)

    def __str__(self) -> str:
        return self.path

    @property
    def storage_name(self) -> str:
        """The file's name in the ``artifacts`` storage."""
        return f"{self.job_id}/{self.path}"
