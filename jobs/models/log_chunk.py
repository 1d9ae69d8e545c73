"""A stretch of a job's log, compressed."""

import zlib

from django.db import models
from django.utils.translation import gettext_lazy as _


class LogChunk(models.Model):
    job = models.ForeignKey("jobs.Job", models.CASCADE, related_name="log_chunks", verbose_name=_("job"))
    offset = models.BigIntegerField(_("offset"), help_text=_("Where it begins in the log, in bytes."))
    length = models.PositiveIntegerField(_("length"), help_text=_("Bytes before compression."))
    data = models.BinaryField()

    class Meta:
        verbose_name = _("log chunk")
        verbose_name_plural = _("log chunks")
        ordering = ("job_id", "offset")
        constraints = (models.UniqueConstraint(fields=("job", "offset"), name="log_offset_once"),)

    def __str__(self) -> str:
        return f"{self.job_id} log {self.offset}+{self.length}"

    @property
    def content(self) -> bytes:
        return zlib.decompress(self.data)
