"""The form of every training type, built from its config class."""

from typing import Any

import pytest
from django.http import QueryDict
from django.utils import translation

from jobs.forms import job_form
from jobs.forms.config_form import NOT_IN_FORMS
from jobs.forms.parameter_field import parameter_field, parameter_text
from trainers.cli import to_argv
from trainers.configs import TRAINING_TYPES, choices_of

EVERY_PARAMETER = [
    (type_name, name)
    for type_name, config_class in TRAINING_TYPES.items()
    for name in config_class.model_fields
    if name not in NOT_IN_FORMS
]
# A valid value other than the default, where it does not follow from the type.
OTHERS: dict[str, Any] = {
    "save_dir": "../out/other",
    "save_weight": "other",
    "from_weight": "other",
    "hidden_size": 256,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "data_path": "../dataset/eval-mini.jsonl",
    "eval_data_path": "../dataset/eval-mini.jsonl",
    "tokenizer_path": "../dataset/tokenizer",
    "reward_model_path": "none",
    "train_project": "other",
    "reward_weights": "answer=2",
    "max_steps": 3,
    "lora_name": "other",
    "rho_min": 0.25,
    "rho_max": 0.9,
    "student_hidden_size": 256,
    "teacher_hidden_size": 256,
    "from_student_weight": "other",
    "from_teacher_weight": "other",
    "teacher_path": "../out/teacher",
}
NEEDED_WITH: dict[str, dict[str, str]] = {
    "eval_interval": {"eval_data_path": "../dataset/eval-mini.jsonl"},
    "stop_at": {"eval_data_path": "../dataset/eval-mini.jsonl", "eval_interval": "5"},
}


def another_value(config_class, name):
    field = config_class.model_fields[name]
    if name == "stop_at":
        return f"{config_class.eval_metrics[0]}>=0.5"
    if name in OTHERS:
        return OTHERS[name]
    if isinstance(field.default, bool):
        return not field.default
    if choices := choices_of(field):
        return next(choice for choice in choices if choice != field.default)
    return field.default + 1 if isinstance(field.default, int) else field.default / 2 or 0.5


@pytest.mark.parametrize(("type_name", "name"), EVERY_PARAMETER)
def test_each_typed_parameter_reaches_the_command(db, type_name, name):
    config_class = TRAINING_TYPES[type_name]
    value = another_value(config_class, name)
    typed = {"start_from": "rule", "dependency_rule": "success", "device": "any", "queue_anyway": "on"}
    data = QueryDict(mutable=True)
    data.update(typed | NEEDED_WITH.get(name, {}) | {name: parameter_text(value)})
    form = job_form(config_class)(data)
    assert form.is_valid(), form.errors
    assert f"--{name} {parameter_text(value)}" in " ".join(to_argv(form.config))


@pytest.mark.parametrize("type_name", TRAINING_TYPES)
def test_job_fields_and_parameters_share_no_name(type_name):
    form_class = job_form(TRAINING_TYPES[type_name])
    assert not set(form_class.base_fields) & set(TRAINING_TYPES[type_name].model_fields)


@pytest.mark.parametrize("type_name", TRAINING_TYPES)
def test_every_parameter_stands_in_exactly_one_group(db, type_name):
    form = job_form(TRAINING_TYPES[type_name])()
    placed = [field.html_name for group in form.groups() for field in (*group.basic, *group.expert)]
    assert sorted(placed) == sorted(form.parameter_names())


def test_the_algorithms_own_parameters_come_first_in_the_order_of_the_seeds(db):
    groups = {group.title: group for group in job_form(TRAINING_TYPES["grpo"])().groups()}
    names = [field.html_name for field in groups["Algorithm"].basic]
    assert names[:5] == ["beta", "num_generations", "reasoning", "reward_model_path", "loss_type"]


def test_experts_fields_are_apart(db):
    groups = {group.title: group for group in job_form(TRAINING_TYPES["sft"])().groups()}
    assert "weight_decay" in [field.html_name for field in groups["Algorithm"].expert]
    assert "learning_rate" in [field.html_name for field in groups["Basic"].basic]


def test_widgets_follow_the_types():
    fields = TRAINING_TYPES["grpo"].model_fields
    assert parameter_field(fields["reasoning"]).widget.choices == [("1", "1"), ("0", "0")]
    assert parameter_field(fields["loss_type"]).widget.choices == [("grpo", "grpo"), ("cispo", "cispo")]
    rate = parameter_field(fields["learning_rate"])
    assert (rate.widget.input_type, rate.widget.attrs["step"], rate.widget.attrs["placeholder"]) == (
        "number",
        "any",
        "8e-08",
    )
    assert parameter_field(fields["max_steps"]).widget.input_type == "number"
    assert parameter_field(fields["data_path"]).widget.attrs["data-path-kind"] == "file"


def test_a_field_starts_with_its_default():
    fields = TRAINING_TYPES["grpo"].model_fields
    assert parameter_field(fields["reasoning"]).initial == "1"
    assert parameter_field(fields["max_steps"]).initial == ""
    assert parameter_field(fields["beta"]).initial == "0.02"


def test_words_are_in_the_readers_language():
    field = TRAINING_TYPES["sft"].model_fields["epochs"]
    assert parameter_field(field).label == "Epochs"
    with translation.override("zh-hans"):
        assert (parameter_field(field).label, parameter_field(field).help_text) == ("训练轮数", "遍历数据的次数。")
