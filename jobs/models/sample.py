"""One prompt with its completions at one step."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Sample(models.Model):
    class Kind(models.TextChoices):
        TRAIN = "train", _("Training")
        EVAL = "eval", _("Evaluation")

    job = models.ForeignKey("jobs.Job", models.CASCADE, related_name="samples", verbose_name=_("job"))
    step = models.PositiveIntegerField(_("step"))
    kind = models.CharField(_("kind"), max_length=8, choices=Kind)
    index = models.PositiveIntegerField(_("index"), help_text=_("Which prompt of the step, from 0."))
    prompt = models.TextField(_("prompt"))
    answer = models.TextField(_("answer"), null=True)
    completions = models.JSONField(
        _("completions"), help_text=_("Text, rewards, reward, advantage, length, truncated.")
    )

    class Meta:
        verbose_name = _("sample")
        verbose_name_plural = _("samples")
        ordering = ("job_id", "step", "kind", "index")
        constraints = (models.UniqueConstraint(fields=("job", "step", "kind", "index"), name="sample_once"),)

    def __str__(self) -> str:
        return f"{self.job_id} @ {self.step}: {self.prompt[:40]}"
