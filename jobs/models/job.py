"""A job: what was asked. Its attempts say what was done about it."""

import uuid

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from jobs.models.retention_rule import RetentionRule
from trainers.configs import TRAINING_TYPES, TrainConfig


class Job(models.Model):
    class Status(models.TextChoices):
        HELD = "held", _("Held")
        QUEUED = "queued", _("Queued")
        RUNNING = "running", _("Running")
        COMPLETED = "completed", _("Completed")
        FAILED = "failed", _("Failed")
        OUT_OF_MEMORY = "out_of_memory", _("Out of memory")
        TIMED_OUT = "timed_out", _("Timed out")
        CANCELLED = "cancelled", _("Cancelled")
        LOST = "lost", _("Lost")

    WAITING = (Status.HELD, Status.QUEUED)
    UNFINISHED = (Status.HELD, Status.QUEUED, Status.RUNNING)
    FINISHED = (Status.COMPLETED, Status.FAILED, Status.OUT_OF_MEMORY, Status.TIMED_OUT, Status.CANCELLED, Status.LOST)

    class StartFrom(models.TextChoices):
        RULE = "rule", _("The script's own rule")
        JOB = "job", _("Another job's weights")
        FOLDER = "folder", _("A model folder")

    class DependencyRule(models.TextChoices):
        SUCCESS = "success", _("after it succeeds")
        ANY_END = "any_end", _("after it ends, however")

    class DeviceRequest(models.TextChoices):
        ANY = "any", _("Any device")
        GPU = "gpu", _("Any GPU")
        CPU = "cpu", _("The CPU")
        LABEL = "label", _("A device with a label")
        NAMED = "named", _("A named device")

    class Priority(models.IntegerChoices):
        LOW = -1, _("Low")
        NORMAL = 0, _("Normal")
        HIGH = 1, _("High")

    # What was asked, frozen at submission.
    name = models.CharField(_("name"), max_length=120, blank=True)
    training_type = models.CharField(_("type"), max_length=32)
    title = models.CharField(_("type"), max_length=64, help_text=_("As lists show it, such as GRPO (CISPO)."))
    params = models.JSONField(_("parameters"), default=dict)
    command = models.JSONField(_("command"), default=list)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="jobs", verbose_name=_("owner"))
    batch = models.ForeignKey(
        "jobs.Batch", models.PROTECT, null=True, blank=True, related_name="jobs", verbose_name=_("batch")
    )
    start_from = models.CharField(_("start from"), max_length=8, choices=StartFrom, default=StartFrom.RULE)
    depends_on = models.ForeignKey(
        "self", models.PROTECT, null=True, blank=True, related_name="dependents", verbose_name=_("depends on")
    )
    dependency_rule = models.CharField(_("when"), max_length=8, choices=DependencyRule, default=DependencyRule.SUCCESS)
    device_request = models.CharField(_("device"), max_length=8, choices=DeviceRequest, default=DeviceRequest.ANY)
    device = models.ForeignKey(
        "jobs.Device", models.PROTECT, null=True, blank=True, related_name="+", verbose_name=_("named device")
    )
    device_label = models.CharField(_("device label"), max_length=40, blank=True)
    device_count = models.PositiveSmallIntegerField(_("devices"), default=1, help_text=_("All of one host."))
    not_before = models.DateTimeField(_("not before"), null=True, blank=True)
    window = models.ForeignKey(
        "jobs.Window", models.PROTECT, null=True, blank=True, related_name="jobs", verbose_name=_("window")
    )
    time_limit = models.PositiveIntegerField(
        _("time limit"), null=True, blank=True, help_text=_("Minutes of running, all attempts together.")
    )
    priority = models.SmallIntegerField(_("priority"), choices=Priority, default=Priority.NORMAL)
    code_revision = models.CharField(_("code revision"), max_length=64, blank=True)
    submission_key = models.CharField(max_length=64, unique=True, null=True, blank=True, editable=False)
    created_at = models.DateTimeField(_("created"), auto_now_add=True, db_index=True)
    queued_at = models.DateTimeField(_("queued"), null=True)
    place = models.PositiveIntegerField(
        _("place"), default=0, help_text=_("Where an operator put it: the highest goes first, before every priority.")
    )
    keep_files = models.BooleanField(
        _("keep files"), default=False, help_text=_("No retention rule removes its checkpoint or weights.")
    )

    # Where it stands.
    status = models.CharField(_("status"), max_length=16, choices=Status, default=Status.QUEUED, db_index=True)
    cause = models.CharField(_("cause"), max_length=500, blank=True)
    advice = models.CharField(_("advice"), max_length=500, blank=True, help_text=_("What to change after a failure."))
    started_at = models.DateTimeField(_("started"), null=True)
    finished_at = models.DateTimeField(_("finished"), null=True)
    requeues = models.PositiveIntegerField(_("times requeued"), default=0)
    resume = models.BooleanField(
        _("resume"), default=False, help_text=_("The next attempt continues from the checkpoint.")
    )
    step = models.PositiveIntegerField(_("step"), default=0)
    total_steps = models.PositiveIntegerField(_("steps"), default=0)
    checkpoint_step = models.PositiveIntegerField(_("last checkpoint"), null=True)
    checkpoint_host = models.CharField(_("host of the checkpoint"), max_length=120, blank=True)
    cost_key = models.CharField(
        max_length=64, blank=True, editable=False, db_index=True, help_text="The same for jobs that take equally long."
    )
    pace_key = models.CharField(
        max_length=64, blank=True, editable=False, db_index=True, help_text="The same for jobs with equal steps."
    )
    disk_bytes = models.BigIntegerField(_("disk"), default=0, help_text=_("What its run folder holds, in bytes."))
    files_removed = models.CharField(
        _("removed"), max_length=12, choices=RetentionRule.Removes, blank=True, help_text=_("What a rule removed.")
    )
    files_removed_at = models.DateTimeField(_("files removed"), null=True)
    last_values = models.JSONField(_("last values"), default=dict)
    result = models.JSONField(_("result"), default=dict)

    # The lease: who may write. Cleared when the attempt ends.
    lease_token = models.UUIDField(null=True, editable=False)
    lease_until = models.DateTimeField(null=True, editable=False, db_index=True)
    worker = models.ForeignKey(
        "jobs.Worker", models.SET_NULL, null=True, blank=True, related_name="jobs", verbose_name=_("worker")
    )
    cancel_requested_at = models.DateTimeField(_("cancel asked"), null=True, editable=False)
    cancel_requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="+"
    )
    yield_reason = models.CharField(
        max_length=200, blank=True, editable=False, help_text="Why it shall save and go back to the queue, if it shall."
    )

    class Meta:
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        ordering = ("-id",)
        indexes = (models.Index(fields=("status", "priority", "id"), name="job_claim_order"),)
        permissions = (
            ("high_priority", "Can queue at high priority"),
            ("operate", "Can steer the queue: order, devices, windows, limits, retention"),
        )

    def __str__(self) -> str:
        return f"{self.pk} {self.title}{f' {self.name}' if self.name else ''}"

    @property
    def run_dir(self) -> str:
        """The run folder as commands name it, the same on every host."""
        return f"runs/{self.pk}"

    @property
    def is_finished(self) -> bool:
        return self.status in self.FINISHED

    @property
    def progress(self) -> float:
        """Share of the steps that are done, 0 to 1."""
        return min(self.step / self.total_steps, 1.0) if self.total_steps else 0.0

    @staticmethod
    def new_token() -> uuid.UUID:
        return uuid.uuid4()

    def config(self) -> TrainConfig:
        """Return the parameters as their class.

        Raises:
            ValidationError: they are of an older version that today's class does not accept.
        """
        return TRAINING_TYPES[self.training_type].model_validate(self.params)
