"""Where and when a job runs: the fields that the queue's rules read."""

from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.utils.translation import gettext, gettext_lazy
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanWidget,
)

from jobs.forms.config_form import ConfigForm
from jobs.forms.device_choice import DeviceSelect, device_choices, device_value, most_together
from jobs.models import Job, Window
from jobs.services.wishes import LONGEST_LIMIT, MOST_DEVICES, may_have_priority
from trainers.configs import TrainConfig

# A time that has passed means now; beyond these, a change of time zone may leave the calendar.
EARLIEST, LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


class MinuteInput(forms.DateTimeInput):
    input_type = "datetime-local"

    def __init__(self) -> None:
        super().__init__({"class": UnfoldAdminTextInputWidget().attrs["class"]}, format="%Y-%m-%dT%H:%M")


class QueueForm(ConfigForm):
    """The fields of the queue, for ``person`` who fills them in; ``edited`` keeps what it has."""

    device = forms.ChoiceField(initial="any", label=gettext_lazy("Device"), widget=DeviceSelect())
    device_count = forms.IntegerField(
        required=False,  # empty: one
        min_value=1,
        max_value=MOST_DEVICES,
        initial=1,
        label=gettext_lazy("Number of devices"),
        widget=UnfoldAdminIntegerFieldWidget(),
    )
    priority = forms.TypedChoiceField(
        required=False,
        choices=Job.Priority.choices,
        coerce=int,
        empty_value=None,
        initial=Job.Priority.NORMAL.value,
        label=gettext_lazy("Priority"),
        widget=UnfoldAdminSelectWidget(),
    )
    window = forms.ModelChoiceField(
        Window.objects.all(),
        required=False,
        label=gettext_lazy("Window"),
        help_text=gettext_lazy("The job starts only inside these hours."),
        widget=UnfoldAdminSelectWidget(),
    )
    not_before = forms.DateTimeField(
        required=False,
        label=gettext_lazy("Not before"),
        help_text=gettext_lazy("In your own time zone."),
        widget=MinuteInput(),
    )
    time_limit = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=LONGEST_LIMIT,
        label=gettext_lazy("Time limit"),
        help_text=gettext_lazy("Minutes of running, all attempts together; empty: no limit."),
        widget=UnfoldAdminIntegerFieldWidget(),
    )
    hold = forms.BooleanField(
        required=False,
        label=gettext_lazy("Hold"),
        help_text=gettext_lazy("The job waits until somebody releases it."),
        widget=UnfoldBooleanWidget(),
    )

    def __init__(self, *args: Any, person: User | None = None, edited: Job | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.edited = edited
        self._offer_devices()
        self._offer_priorities(person)

    def clean_device(self) -> str:
        value: str = self.cleaned_data["device"]
        if value in self.unserved:
            raise ValidationError(self.unserved[value])
        return value

    def clean_not_before(self) -> datetime | None:
        when: datetime | None = self.cleaned_data["not_before"]
        if when is not None and not EARLIEST <= when <= LATEST:
            raise ValidationError(gettext("Choose a time between 2000 and 2100."))
        return when

    def missing(self, config: TrainConfig) -> dict[str, str]:
        return super().missing(config) | self._too_many_devices()

    def _too_many_devices(self) -> dict[str, str]:
        """Return that no host has so many, unless one device is asked for: without any worker a job just waits."""
        asked, device = self.cleaned_data.get("device_count") or 1, self.cleaned_data.get("device")
        if asked == 1 or device is None or asked <= (most := most_together(device)):
            return {}
        told = gettext("no host has %(asked)d such devices with a worker; the most is %(most)d")
        return {"device_count": told % {"asked": asked, "most": most}}

    def _offer_devices(self) -> None:
        kept = device_value(self.edited) if self.edited else ""
        choices, reasons = device_choices(kept or str(self.initial.get("device", "")))
        self.unserved = {value: reason for value, reason in reasons.items() if value != kept}
        device = self.fields["device"]
        assert isinstance(device, forms.ChoiceField)
        assert isinstance(device.widget, DeviceSelect)
        device.choices = choices
        device.widget.disabled = frozenset(self.unserved)
        if most := most_together(Job.DeviceRequest.ANY):
            told = gettext("All of one host and one kind; the largest has %(most)d.")
            self.fields["device_count"].help_text = told % {"most": most}

    def _offer_priorities(self, person: User | None) -> None:
        """Show the priorities that a person may give; another that is sent all the same is refused by its name."""
        kept = self.edited.priority if self.edited else Job.Priority.NORMAL
        shown = [
            (value, label)
            for value, label in Job.Priority.choices
            if value <= kept or (person is not None and may_have_priority(person, value))
        ]
        field = self.fields["priority"]
        assert isinstance(field.widget, forms.Select)
        field.widget.choices = shown
        if str(self.initial.get("priority", "")) not in ("", *(str(value) for value, _ in shown)):
            self.initial = {**self.initial, "priority": field.initial}
