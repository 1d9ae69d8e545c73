"""The form of a saved configuration: the same parameters as a job's."""

from functools import cache
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminTextInputWidget, UnfoldBooleanWidget

from jobs.forms.config_form import ConfigForm
from jobs.models import TrainingConfig
from trainers.configs import TrainConfig


class TrainingConfigForm(ConfigForm):
    """What ``training_config_form`` completes with the parameters of a type."""

    config_name = forms.CharField(max_length=120, label=_("Name"), widget=UnfoldAdminTextInputWidget())
    note = forms.CharField(required=False, max_length=500, label=_("Note"), widget=UnfoldAdminTextInputWidget())
    team = forms.BooleanField(
        required=False,
        label=_("For the whole team"),
        help_text=_("Everybody can use it; only a superuser can change it."),
        widget=UnfoldBooleanWidget(),
    )

    def __init__(self, *args: Any, instance: TrainingConfig, person: User, **kwargs: Any) -> None:
        self.instance, self.person = instance, person
        super().__init__(*args, **kwargs)
        if not person.is_superuser:
            del self.fields["team"]

    def job_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in ("config_name", "note", "team") if name in self.fields]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        twins = TrainingConfig.objects.filter(
            training_type=self.config_class.type_name, name=cleaned.get("config_name"), owner=self._owner()
        )
        if twins.exclude(pk=self.instance.pk).exists():
            self.add_error("config_name", _("There is a config of this name already."))
        return cleaned

    def save(self) -> TrainingConfig:
        """Write the configuration; the form must be valid."""
        config = self.instance
        config.training_type = self.config_class.type_name
        config.name, config.note = self.cleaned_data["config_name"], self.cleaned_data["note"]
        config.params = {name: getattr(self.config, name) for name in self.typed_params()}
        config.owner = self._owner()
        config.save()
        return config

    def _owner(self) -> User | None:
        """Return whose it is: the team's, or of who had it, or of who takes it from the team."""
        if "team" not in self.fields:
            return self.instance.owner
        return None if self.cleaned_data.get("team") else self.instance.owner or self.person


@cache
def training_config_form(config_class: type[TrainConfig]) -> type[TrainingConfigForm]:
    """Return the form of saved configurations of one training type."""
    return type(f"{config_class.__name__}SavedForm", (TrainingConfigForm,), {"config_class": config_class})
