"""Whether the paths of a configuration may be used, and whether they are there on this host."""

from django.utils.translation import gettext as _

from trainers.configs import PathKind, TrainConfig, about
from trainers.paths import PathRefused, confine_path, weight_name

OFF = "none"


def path_errors(config: TrainConfig) -> dict[str, str]:
    """Return why a path may not be used, by parameter."""
    errors = {}
    for name, kind, value in _paths(config):
        try:
            confine_path(value, writable=kind is PathKind.OUTPUT)
        except PathRefused as refused:
            errors[name] = str(refused)
    return errors


def path_warnings(config: TrainConfig) -> dict[str, str]:
    """Return which paths are missing on this host, by parameter; a worker elsewhere may have them."""
    return {
        name: _("%(path)s is not on this host") % {"path": value}
        for name, kind, value in _paths(config)
        if kind is not PathKind.OUTPUT and not _is_there(value, kind)
    }


def weight_warnings(config: TrainConfig) -> dict[str, str]:
    """Return which weights the script's own rule would miss on this host, by the field that chooses them."""
    name = config.starting_weights()
    if name is None:
        return {}
    size = config.model_size()
    file_name = weight_name(name, size.hidden_size, moe=size.use_moe)
    files = [f"{folder}/{file_name}" for folder in config.weight_folders()]
    if any(_is_there(file, PathKind.FILE) for file in files):
        return {}
    named_by = (field for field in ("from_weight", "from_student_weight") if field in type(config).model_fields)
    chosen_by = next(named_by, "start_from")
    return {chosen_by: _("the weights %(path)s are not on this host") % {"path": ", ".join(files)}}


def _paths(config: TrainConfig) -> list[tuple[str, PathKind, str]]:
    values = {name: getattr(config, name) for name in type(config).model_fields}
    return [
        (name, kind, values[name])
        for name, field in type(config).model_fields.items()
        if (kind := about(field).path) is not None and values[name] not in (None, OFF)
    ]


def _is_there(value: str, kind: PathKind) -> bool:
    try:
        path = confine_path(value)
    except PathRefused:
        return True  # already an error
    return path.is_file() if kind is PathKind.FILE else path.is_dir()
