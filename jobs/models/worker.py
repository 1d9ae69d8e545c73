"""The Celery workers and the devices they are pinned to."""

from django.conf import settings
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
    labels = models.CharField(
        _("labels"),
        max_length=200,
        blank=True,
        help_text=_("Separated by spaces; a job can ask for one. A GPU's memory, such as 80g, is one by itself."),
    )
    attempt = models.ForeignKey(
        "jobs.Attempt",
        models.SET_NULL,
        null=True,
        editable=False,
        related_name="held_devices",
        verbose_name=_("held by"),
    )
    drained_at = models.DateTimeField(_("drained"), null=True, editable=False)
    drained_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="+", verbose_name=_("by")
    )
    drain_reason = models.CharField(_("why drained"), max_length=200, blank=True, editable=False)

    class Meta:
        verbose_name = _("device")
        verbose_name_plural = _("devices")
        ordering = ("host", "kind", "index")

    def __str__(self) -> str:
        return f"{self.name} ({self.host})"

    @property
    def all_labels(self) -> frozenset[str]:
        """What an operator wrote, and a GPU's memory in GiB."""
        memory = [f"{round(self.memory_bytes / 2**30)}g"] if self.kind == self.Kind.GPU and self.memory_bytes else []
        return frozenset([*self.labels.split(), *memory])


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
