"""Named hours of the week in which jobs may start."""

import zoneinfo
from datetime import time

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

EVERY_DAY = "0123456"


def validate_time_zone(name: str) -> None:
    """Refuse what is no time zone's name."""
    if name not in zoneinfo.available_timezones():
        raise ValidationError(_("%(name)s is no time zone; name one as Asia/Shanghai") % {"name": name})


class Window(models.Model):
    class AtEnd(models.TextChoices):
        RUN_ON = "run_on", _("Running jobs run on")
        REQUEUE = "requeue", _("Running jobs save a checkpoint and wait for the next opening")

    name = models.CharField(_("name"), max_length=60, unique=True)
    time_zone = models.CharField(_("time zone"), max_length=60, validators=[validate_time_zone])
    weekdays = models.CharField(
        _("weekdays"),
        max_length=7,
        default=EVERY_DAY,
        validators=[RegexValidator("^0?1?2?3?4?5?6?$", _("digits from 0 (Monday) to 6 (Sunday), in order"))],
        help_text=_("On which it opens: digits from 0 (Monday) to 6 (Sunday)."),
    )
    opens = models.TimeField(_("opens"), default=time(20))
    closes = models.TimeField(
        _("closes"), default=time(8), help_text=_("On the next day when not later than the opening.")
    )
    at_end = models.CharField(_("at its end"), max_length=8, choices=AtEnd, default=AtEnd.RUN_ON)

    class Meta:
        verbose_name = _("window")
        verbose_name_plural = _("windows")
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name
