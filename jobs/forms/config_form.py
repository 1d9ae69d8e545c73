"""The form of one training type, built from its config class."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS
from django.core.exceptions import ValidationError as Refused
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from pydantic import ValidationError

from jobs.forms.parameter_field import parameter_field, parameter_text
from jobs.forms.path_checks import path_errors, path_warnings
from trainers.cli import field_errors
from trainers.configs import Group, TrainConfig, about

# Written by the queue (from_resume) or by "Start from" (init_path), never typed.
NOT_IN_FORMS = ("from_resume", "init_path")
CONTROLS = ("csrfmiddlewaretoken", "training_type", "shown_type", "_save", "_reload", "_continue", "_queue", "upload")
GROUP_TITLES: dict[Group, Promise] = {
    Group.BASIC: _("Basic"),
    Group.ALGORITHM: _("Algorithm"),
    Group.MODEL: _("Model"),
    Group.SAVE: _("Save and resume"),
    Group.HARDWARE: _("Hardware"),
}


@dataclass(frozen=True, kw_only=True)
class FieldGroup:
    """The parameters that stand together: those everybody sees and those that are folded."""

    title: str
    basic: list[forms.BoundField]
    expert: list[forms.BoundField]

    @property
    def expert_has_errors(self) -> bool:
        return any(field.errors for field in self.expert)


class ConfigForm(forms.Form):
    """The parameters of one training type. ``config`` is there once the form is valid."""

    config_class: ClassVar[type[TrainConfig]]

    queue_anyway = forms.BooleanField(required=False, label=_("Queue anyway"))
    config: TrainConfig | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.warnings: dict[str, str] = {}
        for name in self.parameter_names():
            self.fields[name] = parameter_field(self.config_class.model_fields[name])

    @classmethod
    def parameter_names(cls) -> list[str]:
        return [name for name in cls.config_class.model_fields if name not in NOT_IN_FORMS]

    @classmethod
    def texts(cls, params: dict[str, Any]) -> dict[str, str]:
        """Return the parameters of ``params`` that this form shows, as it shows them."""
        return {name: parameter_text(params[name]) for name in cls.parameter_names() if name in params}

    def groups(self) -> Iterator[FieldGroup]:
        """Return the parameters group by group, an algorithm's own before those that every type has."""
        inherited = {name for base in self.config_class.__bases__ for name in getattr(base, "model_fields", ())}
        for group in Group:
            mine = [n for n in self.parameter_names() if about(self.config_class.model_fields[n]).group is group]
            if group is Group.ALGORITHM:
                mine.sort(key=inherited.__contains__)
            folded = {name for name in mine if about(self.config_class.model_fields[name]).expert}
            yield FieldGroup(
                title=str(GROUP_TITLES[group]),
                basic=[self[name] for name in mine if name not in folded],
                expert=[self[name] for name in mine if name in folded],
            )

    def wrong_fields(self) -> list[forms.BoundField]:
        """Return the fields with errors; a missing path that only has to be confirmed is none."""
        return [field for field in self if field.errors and field.html_name != "queue_anyway"]

    def typed_params(self) -> dict[str, Any]:
        """Return what was typed, as parameters; empty means unset, so that the default applies."""
        values = {name: (self.cleaned_data.get(name) or "").strip() for name in self.parameter_names()}
        return {name: value for name, value in values.items() if value}

    def clean(self) -> dict[str, Any]:
        self._refuse_unknown_parameters()
        try:
            config = self.config_class.model_validate(self.typed_params())
        except ValidationError as error:
            for name, message in field_errors(error).items():
                self.add_field_error(name, message)
            return self.cleaned_data
        for name, message in path_errors(config).items():
            self.add_field_error(name, message)
        self.warnings |= self.missing(config)
        for name in set(self.warnings) & set(self.fields):
            vars(self[name])["warning"] = self.warnings[name]  # shown beside the field
        if self.warnings and not self.cleaned_data.get("queue_anyway"):
            self.add_error(
                "queue_anyway", _("Nothing was submitted yet: confirm that a worker has what is missing here.")
            )
        self.config = config
        return self.cleaned_data

    def missing(self, config: TrainConfig) -> dict[str, str]:
        """Return what ``config`` names and this host lacks, by field."""
        return path_warnings(config)

    def add_field_error(self, name: str, message: str) -> None:
        """Put an error at its field, or on top when the form does not show it."""
        if name in (*self.fields, NON_FIELD_ERRORS):
            self.add_error(name, message)
        else:
            self.add_error(None, f"{name}: {message}")

    def add_field_errors(self, refused: Refused) -> None:
        """Put what a service refuses at the fields that it names."""
        for name, texts in refused.message_dict.items():
            self.add_field_error(name, " ".join(texts))

    def _refuse_unknown_parameters(self) -> None:
        for name in sorted(set(self.data) - set(self.fields) - set(CONTROLS)):
            self.add_error(
                None,
                _("%(name)s is not a parameter of %(type)s here; nothing was submitted.")
                % {"name": name, "type": self.config_class.title},
            )
