"""How much one person may have in the queue at a time."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class Limit(models.Model):
    person = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="queue_limit",
        verbose_name=_("person"),
        help_text=_("Empty: everybody who has no limit of their own."),
    )
    max_running = models.PositiveIntegerField(_("running jobs"), null=True, blank=True, help_text=_("Empty: no limit."))
    max_queued = models.PositiveIntegerField(_("waiting jobs"), null=True, blank=True, help_text=_("Empty: no limit."))

    class Meta:
        verbose_name = _("limit")
        verbose_name_plural = _("limits")
        ordering = ("person__username",)
        constraints = (
            models.UniqueConstraint(models.Value(1), condition=models.Q(person=None), name="one_limit_for_everybody"),
        )

    def __str__(self) -> str:
        return str(self.person or _("everybody"))
