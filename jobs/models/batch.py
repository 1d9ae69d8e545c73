"""A named set of jobs that are followed together."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class Batch(models.Model):
    name = models.CharField(_("name"), max_length=120)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="batches", verbose_name=_("owner"))
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("batch")
        verbose_name_plural = _("batches")
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return self.name
