"""A machine that runs workers, and the disk their run folders share."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Host(models.Model):
    name = models.CharField(_("name"), max_length=120, unique=True)
    disk_free = models.BigIntegerField(_("disk free"), default=0)
    disk_total = models.BigIntegerField(_("disk"), default=0)
    home = models.CharField(
        max_length=36, blank=True, editable=False, help_text="The same on hosts that share one state folder."
    )
    paused_reason = models.CharField(
        _("paused"), max_length=200, blank=True, help_text=_("Why the queue starts nothing there, if it does not.")
    )
    seen_at = models.DateTimeField(_("last heard of"), null=True)

    class Meta:
        verbose_name = _("host")
        verbose_name_plural = _("hosts")
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name
