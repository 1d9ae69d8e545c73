"""The form field of one training parameter: its widget by type, its words in the reader's language."""

import types
from typing import Any, get_args

from django import forms
from django.utils.translation import get_language
from pydantic.fields import FieldInfo
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from trainers.configs import PathKind, about, choices_of


def parameter_field(field: FieldInfo) -> forms.CharField:
    """Return a form field that carries the text of a parameter; the config class judges it, not the form."""
    told = about(field)
    chinese = (get_language() or "").startswith("zh")
    return forms.CharField(
        required=False,
        initial=parameter_text(field.default),
        label=told.label_zh if chinese else told.label,
        help_text=told.help_zh if chinese else told.help,
        widget=_widget(field, told.path),
    )


def parameter_text(value: Any) -> str:
    """Return a value as the command line writes it: switches as 0 or 1, unset as nothing."""
    if value is None:
        return ""
    return str(int(value)) if isinstance(value, bool) else str(value)


def _widget(field: FieldInfo, path: PathKind | None) -> forms.Widget:
    options = ("1", "0") if field.annotation is bool else choices_of(field)
    attrs: dict[str, Any] = {"placeholder": parameter_text(field.default), "autocomplete": "off"}
    if path is not None:
        attrs |= {"data-path-kind": path.value, "spellcheck": "false"}
    widget: forms.Widget
    if options:
        widget = UnfoldAdminSelectWidget(choices=[(option, option) for option in options])
    elif _is_number(field.annotation):
        widget = UnfoldAdminIntegerFieldWidget(attrs={**attrs, "step": "any"})
    else:
        widget = UnfoldAdminTextInputWidget(attrs=attrs)
    return widget


def _is_number(annotation: Any) -> bool:
    kinds = get_args(annotation) if isinstance(annotation, types.UnionType) else (annotation,)
    return any(kind in (int, float) for kind in kinds)
