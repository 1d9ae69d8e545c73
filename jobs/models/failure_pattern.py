"""What a line of a log means, and what to do about it."""

import re

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext_lazy as _

NESTED_REPETITION = re.compile(r"\((?:[^()\\]|\\.)*(?:[+*]|\{\d*,\d*\})(?:[^()\\]|\\.)*\)(?:[+*]|\{\d*,\d*\})")


def validate_expression(text: str) -> None:
    """Refuse what is no regular expression, what every line matches, and what can take for ever."""
    try:
        expression = re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValidationError(_("no regular expression: %(error)s") % {"error": error}) from None
    if expression.search(""):
        raise ValidationError(_("every line matches this; name something that only this failure says"))
    if NESTED_REPETITION.search(text):
        raise ValidationError(_("a repetition of a repetition, as in (a+)+, can take for ever; repeat once"))


class FailurePattern(models.Model):
    title = models.CharField(_("title"), max_length=120, unique=True, help_text=_("What people read as the cause."))
    pattern = models.CharField(
        _("pattern"), max_length=300, validators=[validate_expression], help_text=_("A regular expression.")
    )
    advice = models.CharField(_("advice"), max_length=500, blank=True)
    machine_fault = models.BooleanField(
        _("machine fault"), default=False, help_text=_("The job goes back to the queue, at most three times.")
    )
    out_of_memory = models.BooleanField(
        _("out of memory"), default=False, help_text=_("The advice is computed from the job's own parameters.")
    )
    order = models.PositiveIntegerField(_("order"), default=100, help_text=_("The first that matches counts."))
    builtin = models.BooleanField(_("ships with Nightshift"), default=False, editable=False)

    class Meta:
        verbose_name = _("failure pattern")
        verbose_name_plural = _("failure patterns")
        ordering = ("order", "pk")

    def __str__(self) -> str:
        return self.title
