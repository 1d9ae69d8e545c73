"""A named configuration of one training type, kept by a person or by the team."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from trainers.configs import TRAINING_TYPES, TrainConfig


class TrainingConfig(models.Model):
    name = models.CharField(_("name"), max_length=120)
    training_type = models.CharField(_("type"), max_length=32)
    params = models.JSONField(_("parameters"), default=dict)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="training_configs",
        verbose_name=_("owner"),
        help_text=_("Empty: the team's."),
    )
    note = models.CharField(_("note"), max_length=500, blank=True)
    builtin = models.BooleanField(_("ships with Nightshift"), default=False, editable=False)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        verbose_name = _("training config")
        verbose_name_plural = _("training configs")
        ordering = ("training_type", "-builtin", "name")
        constraints = (
            models.UniqueConstraint(fields=("training_type", "name", "owner"), name="config_name_once_per_person"),
            models.UniqueConstraint(
                fields=("training_type", "name"), condition=models.Q(owner=None), name="config_name_once_in_team"
            ),
        )

    def __str__(self) -> str:
        return (
            f"{TRAINING_TYPES[self.training_type].short_title}: {self.name}"
            if self.training_type in TRAINING_TYPES
            else self.name
        )

    def config(self) -> TrainConfig:
        """Return the parameters as their class.

        Raises:
            ValidationError: they are of an older version that today's class does not accept.
        """
        return TRAINING_TYPES[self.training_type].model_validate(self.params)
