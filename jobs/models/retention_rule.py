"""Which checkpoints and weights of ended jobs are kept."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class RetentionRule(models.Model):
    class Removes(models.TextChoices):
        CHECKPOINTS = "checkpoints", _("Checkpoints")
        ALL = "all", _("Checkpoints and weights")

    name = models.CharField(_("name"), max_length=60, unique=True)
    training_type = models.CharField(_("type"), max_length=32, blank=True, help_text=_("Empty: every type."))
    removes = models.CharField(_("removes"), max_length=12, choices=Removes, default=Removes.CHECKPOINTS)
    keep_days = models.PositiveIntegerField(_("keep for days"), default=14, help_text=_("Counted from a job's end."))
    keep_last = models.PositiveIntegerField(
        _("keep the last"), default=3, help_text=_("So many newest jobs of each person and type, however old.")
    )
    keep_best = models.PositiveIntegerField(
        _("keep the best"), default=3, help_text=_("So many jobs of each type and data set, by the metric.")
    )
    metric = models.CharField(
        _("metric"), max_length=80, blank=True, help_text=_("Such as eval/sampled_accuracy; empty: none is best.")
    )
    lower_is_better = models.BooleanField(_("lower is better"), default=False)
    active = models.BooleanField(
        _("active"), default=False, help_text=_("Inactive, it removes nothing; its page shows what it would remove.")
    )
    applied_at = models.DateTimeField(_("last applied"), null=True, editable=False)

    class Meta:
        verbose_name = _("retention rule")
        verbose_name_plural = _("retention rules")
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name
