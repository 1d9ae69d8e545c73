"""Who did what, when and why. Rows are only ever added."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class Event(models.Model):
    class Kind(models.TextChoices):
        SUBMITTED = "submitted", _("submitted")
        STARTED = "started", _("started")
        CANCEL_REQUESTED = "cancel_requested", _("asked to cancel")
        REQUEUED = "requeued", _("back in the queue")
        RESUMED = "resumed", _("resumed")
        HELD = "held", _("held")
        RELEASED = "released", _("released")
        EDITED = "edited", _("edited")
        MOVED = "moved", _("moved in the queue")
        WARNED = "warned", _("warning")
        YIELD_REQUESTED = "yield_requested", _("asked to go back to the queue")
        STARTED_OVER = "started_over", _("starts over")
        FILES_REMOVED = "files_removed", _("files removed")
        DEVICE_DRAINED = "device_drained", _("device drained")
        DEVICE_RESUMED = "device_resumed", _("device resumed")
        HOST_PAUSED = "host_paused", _("host paused")
        HOST_RESUMED = "host_resumed", _("host resumed")
        ENDED = "ended", _("ended")

    job = models.ForeignKey("jobs.Job", models.CASCADE, null=True, related_name="events", verbose_name=_("job"))
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("who")
    )
    kind = models.CharField(_("what"), max_length=20, choices=Kind)
    detail = models.CharField(_("detail"), max_length=500, blank=True)
    created_at = models.DateTimeField(_("when"), auto_now_add=True)

    class Meta:
        verbose_name = _("event")
        verbose_name_plural = _("events")
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.detail}".strip()
