"""The form in which a job is submitted: the parameters of its type, and where and when it runs."""

import uuid
from contextlib import suppress
from functools import cache
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from jobs.forms.config_form import CONTROLS
from jobs.forms.device_choice import requested_device
from jobs.forms.path_checks import weight_warnings
from jobs.forms.queue_form import QueueForm
from jobs.models import Job
from jobs.services.submission import Submission
from trainers.configs import PathKind, TrainConfig

RECENT = 200
# fmt: off
JOB_FIELDS = (
    "name", "start_from", "depends_on", "start_folder", "dependency_rule",
    "device", "device_count", "priority", "window", "not_before", "time_limit", "hold",
)
# fmt: on


class JobForm(QueueForm):
    """What ``job_form`` completes with the parameters of a type."""

    name = forms.CharField(
        required=False, max_length=120, label=_("Name"), widget=UnfoldAdminTextInputWidget({"autocomplete": "off"})
    )
    start_from = forms.ChoiceField(
        choices=Job.StartFrom.choices,
        initial=Job.StartFrom.RULE,
        label=_("Start from"),
        help_text=_("The script's own rule: the weight that Model names, or for RL reason or full_sft by reasoning."),
        widget=UnfoldAdminSelectWidget(),
    )
    start_folder = forms.CharField(
        required=False,
        label=_("Model folder"),
        help_text=_("In Hugging Face format, relative to trainers/."),
        widget=UnfoldAdminTextInputWidget({"data-path-kind": PathKind.FOLDER.value, "spellcheck": "false"}),
    )
    depends_on = forms.ModelChoiceField(
        Job.objects.none(),
        required=False,
        label=_("Waits for job"),
        help_text=_("With “Another job's weights”, the job whose weights this one starts from."),
        widget=UnfoldAdminSelectWidget(),
    )
    dependency_rule = forms.ChoiceField(
        required=False,  # the form sends it only beside a job to wait for
        choices=Job.DependencyRule.choices,
        initial=Job.DependencyRule.SUCCESS,
        label=_("When"),
        widget=UnfoldAdminSelectWidget(),
    )
    submission_key = forms.UUIDField(required=False, widget=forms.HiddenInput())

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["submission_key"].initial = uuid.uuid4()
        if self.edited:
            del self.fields["submission_key"], self.fields["hold"]
        self._offer_jobs()

    def job_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in JOB_FIELDS if name in self.fields]

    def typed_params(self) -> dict[str, Any]:
        folder = (self.cleaned_data.get("start_folder") or "").strip()
        return super().typed_params() | ({"init_path": folder} if folder else {})

    def missing(self, config: TrainConfig) -> dict[str, str]:
        by_rule = self.cleaned_data.get("start_from") == Job.StartFrom.RULE
        return super().missing(config) | (weight_warnings(config) if by_rule else {})

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        start, folder = cleaned.get("start_from"), cleaned.get("start_folder")
        if start == Job.StartFrom.FOLDER and not folder:
            self.add_error("start_folder", _("Name the folder to start from."))
        if start != Job.StartFrom.FOLDER and folder:
            self.add_error("start_folder", _("Choose “A model folder” in Start from, or leave this empty."))
        if start == Job.StartFrom.JOB and not cleaned.get("depends_on"):
            self.add_error("depends_on", _("Name the job whose weights to start from."))
        return cleaned

    def add_field_error(self, name: str, message: str) -> None:
        super().add_field_error({"init_path": "start_folder"}.get(name, name), message)

    def submission(self, owner: User) -> Submission:
        """Return what was asked; the form must be valid."""
        asked = self.cleaned_data
        request, device, label = requested_device(asked["device"])
        return Submission(
            training_type=self.config_class.type_name,
            params=self.typed_params(),
            owner=owner,
            name=asked["name"],
            start_from=asked["start_from"],
            depends_on=asked["depends_on"],
            dependency_rule=asked["dependency_rule"] or Job.DependencyRule.SUCCESS,
            device_request=request,
            device=device,
            device_label=label,
            device_count=asked["device_count"] or 1,
            priority=asked["priority"] or Job.Priority.NORMAL,
            window=asked["window"],
            not_before=asked["not_before"],
            time_limit=asked["time_limit"],
            submission_key=self._key(owner),
            hold=asked.get("hold", False),
        )

    def _key(self, owner: User) -> str | None:
        """Return a key that the same person's same form gives again, and a form that was changed does not."""
        if not self.cleaned_data.get("submission_key"):
            return None
        typed = sorted((name, value) for name, value in self.data.items() if name not in CONTROLS)
        return str(uuid.uuid5(self.cleaned_data["submission_key"], f"{owner.pk} {typed}"))

    def _offer_jobs(self) -> None:
        wanted = Q(status__in=[Job.Status.COMPLETED, *Job.UNFINISHED])
        if self.edited:  # it keeps what it waits for, however that ended
            wanted = (wanted | Q(pk=self.edited.depends_on_id)) & ~Q(pk=self.edited.pk)
        usable = Job.objects.filter(wanted).defer("params", "result")
        field = self.fields["depends_on"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = usable
        offered = list(usable[:RECENT])
        with suppress(ValidationError):  # what is no job is said by the field
            chosen = field.to_python(self["depends_on"].value())
            offered += [chosen] if chosen and chosen not in offered else []
        field.choices = [("", "---------"), *((job.pk, f"{job} ({job.get_status_display()})") for job in offered)]


@cache
def job_form(config_class: type[TrainConfig]) -> type[JobForm]:
    """Return the form of jobs of one training type."""
    return type(f"{config_class.__name__}JobForm", (JobForm,), {"config_class": config_class})
