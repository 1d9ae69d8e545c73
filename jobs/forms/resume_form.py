"""What may change when a finished job goes on from its checkpoint."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from pydantic import ValidationError
from unfold.widgets import UnfoldAdminIntegerFieldWidget

from jobs.forms.parameter_field import parameter_field, parameter_text
from jobs.models import Job
from jobs.services.wishes import LONGEST_LIMIT
from trainers.cli import field_errors

CHANGEABLE = ("epochs", "learning_rate", "max_steps")


class ResumeForm(forms.Form):
    """Epochs, learning rate, steps and time limit, filled with the job's own; ``changes`` holds what differs."""

    changes: dict[str, Any]
    time_limit = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=LONGEST_LIMIT,
        label=_("Time limit"),
        help_text=_("Minutes of running from now on; empty: no limit."),
        widget=UnfoldAdminIntegerFieldWidget(),
    )

    def __init__(self, *args: Any, job: Job, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.config, self.old_limit = job.config(), job.time_limit
        self.fields["time_limit"].initial = job.time_limit
        for name in CHANGEABLE:
            field = parameter_field(type(self.config).model_fields[name])
            field.initial = parameter_text(getattr(self.config, name))
            self.fields[name] = field

    def clean(self) -> dict[str, Any]:
        typed = {name: (self.cleaned_data.get(name) or "").strip() for name in CHANGEABLE}
        unset = {name for name in CHANGEABLE if type(self.config).model_fields[name].default is None}
        try:
            resumed = self.config.replaced(**{n: text or None for n, text in typed.items() if text or n in unset})
        except ValidationError as error:
            for name, message in field_errors(error).items():
                self.add_error(name if name in self.fields else None, message)
            return self.cleaned_data
        new = {name: getattr(resumed, name) for name in CHANGEABLE}
        self.changes = {name: value for name, value in new.items() if value != getattr(self.config, name)}
        if (limit := self.cleaned_data.get("time_limit")) != self.old_limit:
            self.changes["time_limit"] = limit
        return self.cleaned_data
