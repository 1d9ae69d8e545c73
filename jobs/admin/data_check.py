"""What a data file holds, as the chosen training type would read it: checked before anything is queued."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from jobs.admin.form_page import chosen_type
from jobs.admin.permissions import require_submitter
from jobs.worker.environment import passed_on
from trainers.configs import TrainConfig
from trainers.paths import PathRefused, confine_path

TIMEOUT = 60  # seconds
DEFAULT_TOKENIZER = "../dataset/tokenizer"


@require_POST
def check_data(request: HttpRequest) -> HttpResponse:
    """Answer with what the file of the field ``check`` holds, as a piece of the form's page."""
    require_submitter(request)
    config_class = chosen_type(request.POST)
    name = "eval_data_path" if request.POST.get("check") == "eval_data_path" else "data_path"
    found: dict[str, Any] = {"name": name, "path": typed(request.POST, config_class, name)}
    try:
        found |= described(request.POST, config_class, name)
    except (PathRefused, CheckFailed) as error:
        found["error"] = str(error)
    return render(request, "jobs/data_check.html", found)


class CheckFailed(Exception):
    """The check itself gave no answer."""


def described(data: QueryDict, config_class: type[TrainConfig], name: str) -> dict[str, Any]:
    """Return what ``python -m dataset.check`` finds in the file that ``name`` names.

    Raises:
        PathRefused: the file or the tokenizer lies outside the allowed folders.
        CheckFailed: no file is named, or the check did not end in time.
    """
    value = typed(data, config_class, name)
    if not value:
        raise CheckFailed(_("Name a file first."))
    kind = config_class.eval_format if name == "eval_data_path" else config_class.data_format
    argv = [sys.executable, "-m", "dataset.check", str(confine_path(value)), "--kind", kind, "--json"]
    argv += ["--tokenizer_path", str(tokenizer(data, config_class))]
    if (limit := typed(data, config_class, "max_seq_len")).isdecimal():
        argv += ["--max_seq_len", limit]
    try:
        done = subprocess.run(
            argv, cwd=settings.BASE_DIR, env=passed_on(), capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        raise CheckFailed(
            _("The check took longer than %(seconds)d s; run it by hand: python -m dataset.check")
            % {"seconds": TIMEOUT}
        ) from None
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        last = (done.stderr.strip() or _("it said nothing")).splitlines()[-1]
        raise CheckFailed(_("The check failed: %(reason)s") % {"reason": last}) from None
    return found


def tokenizer(data: QueryDict, config_class: type[TrainConfig]) -> Path:
    """Return the tokenizer that a job of this form would use, as far as this host has it."""
    for value in (typed(data, config_class, "tokenizer_path"), data.get("start_folder", "").strip()):
        if value and (folder := confine_path(value)).joinpath("tokenizer_config.json").is_file():
            return folder
    return confine_path(DEFAULT_TOKENIZER)


def typed(data: QueryDict, config_class: type[TrainConfig], name: str) -> str:
    """Return what a field of the form stands for: what was typed, else the default."""
    default = config_class.model_fields[name].default
    return data.get(name, "").strip() or ("" if default is None else str(default))
