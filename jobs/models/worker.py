"""The Celery workers and the devices they are pinned to."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Device(models.Model):
    class Kind(models.TextChoices):
        GPU = "gpu", _("GPU")
        CPU = "cpu", _("CPU")

    key = models.CharField(_("key"), max_length=120, unique=True, help_text=_("A GPU's UUID, or cpu:<host>."))
    kind = models.CharField(_("kind"), max_length=8, choices=Kind)
    host = models.CharField(_("host"), max_length=120)
    name = models.CharField(_("name"), max_length=120)
    index = models.PositiveIntegerField(_("index"), default=0)
    memory_bytes = models.BigIntegerField(_("memory"), default=0)

    class Meta:
        verbose_name = _("device")
        verbose_name_plural = _("devices")
        ordering = ("host", "kind", "index")

    def __str__(self) -> str:
        return f"{self.name} ({self.host})"


class Worker(models.Model):
    name = models.CharField(
        _("name"), max_length=160, unique=True, help_text=_("Celery's node name, such as gpu0@host.")
    )
    host = models.CharField(_("host"), max_length=120)
    pid = models.PositiveIntegerField(_("process"), default=0)
    device = models.ForeignKey(Device, models.PROTECT, related_name="workers", verbose_name=_("device"))
    queue = models.CharField(_("queue"), max_length=80)
    started_at = models.DateTimeField(_("started"), null=True)
    heartbeat_at = models.DateTimeField(_("last heard of"), null=True)
    stopped_at = models.DateTimeField(_("stopped"), null=True)

    class Meta:
        verbose_name = _("worker")
        verbose_name_plural = _("workers")
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name
