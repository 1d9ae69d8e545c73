"""Turn what a person asked into a queued job: validate, freeze, record, wake."""

from typing import Any

import pydantic
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from jobs.models import Event, Job
from jobs.services.duration_keys import duration_keys
from jobs.services.events import record
from jobs.services.limits import refuse_more_waiting
from jobs.services.needs import hold_weights
from jobs.services.revision import code_revision
from jobs.services.submission import Submission
from jobs.services.wake import wake_workers
from jobs.services.wishes import refused_wishes, wrong_priority
from trainers.cli import command_line, field_errors
from trainers.configs import TRAINING_TYPES, PathKind, TrainConfig, about
from trainers.paths import PathRefused, confine_path

OFF = "none"


def submit_job(submission: Submission) -> Job:
    """Queue the job, or return the one that the same submission key made before.

    Raises:
        ValidationError: a parameter or a wish is wrong; messages by field name.
    """
    if (first := _by_key(submission)) is not None:
        return first
    config = config_for(submission)
    if wrong := wrong_priority(submission.owner, submission.priority):
        raise ValidationError(wrong)
    try:
        with transaction.atomic():
            refuse_more_waiting(submission.owner)
            hold_weights(config.model_dump(mode="json"), start_from=submission.start_from)
            return _create(submission, config)
    except (IntegrityError, ValidationError):
        if (first := _by_key(submission)) is None:
            raise
        return first


def config_for(submission: Submission) -> TrainConfig:
    """Return the validated parameters, with the weights that "start from" names.

    Raises:
        ValidationError: a parameter or a wish is wrong; messages by field name.
    """
    if submission.training_type not in TRAINING_TYPES:
        raise ValidationError({"training_type": [_("unknown training type")]})
    params = _with_weights(submission)
    try:
        config = TRAINING_TYPES[submission.training_type].model_validate(params)
    except pydantic.ValidationError as error:
        raise ValidationError({name: [message] for name, message in field_errors(error).items()}) from None
    wrong = _refused_paths(config, own_weights=submission.start_from == Job.StartFrom.JOB) | refused_wishes(submission)
    if wrong:
        raise ValidationError(wrong)
    return config


def frozen_command(config: TrainConfig, run_dir: str, processes: int = 1) -> list[str]:
    """Return the command as people read it; a worker runs it with its own Python, one process per device."""
    return ["python", *command_line(config, run_dir, processes)]


def asked_columns(submission: Submission, config: TrainConfig) -> dict[str, Any]:
    """Return what a job's row holds of what is asked, and of what follows from that alone."""
    return {
        "name": submission.name,
        "title": config.display_title(),
        "params": config.model_dump(mode="json"),
        "start_from": submission.start_from,
        "depends_on": submission.depends_on,
        "dependency_rule": submission.dependency_rule,
        "device_request": submission.device_request,
        "device": submission.device,
        "device_label": submission.device_label,
        "device_count": submission.device_count,
        "not_before": submission.not_before,
        "window": submission.window,
        "time_limit": submission.time_limit,
        "priority": submission.priority,
        "code_revision": code_revision(),
        **duration_keys(config, submission),
    }


def _by_key(submission: Submission) -> Job | None:
    if submission.submission_key is None:
        return None
    return Job.objects.filter(submission_key=submission.submission_key).first()


def _with_weights(submission: Submission) -> dict[str, Any]:
    if submission.start_from != Job.StartFrom.JOB:
        return submission.params
    if submission.depends_on is None:
        raise ValidationError({"depends_on": [_("choose the job whose weights to start from")]})
    return submission.params | {"init_path": f"{submission.depends_on.run_dir}/model"}


def _refused_paths(config: TrainConfig, *, own_weights: bool) -> dict[str, list[str]]:
    refused: dict[str, list[str]] = {}
    for name, field in type(config).model_fields.items():
        kind, value = about(field).path, getattr(config, name)
        if kind is None or value in (None, OFF) or (own_weights and name == "init_path"):
            continue
        try:
            confine_path(value, writable=kind is PathKind.OUTPUT)
        except PathRefused as error:
            refused[name] = [str(error)]
    return refused


def _create(submission: Submission, config: TrainConfig) -> Job:
    job = Job.objects.create(
        training_type=submission.training_type,
        owner=submission.owner,
        batch=submission.batch,
        submission_key=submission.submission_key,
        status=Job.Status.HELD if submission.hold else Job.Status.QUEUED,
        queued_at=timezone.now(),
        **asked_columns(submission, config),
    )
    job.command = frozen_command(config, job.run_dir, job.device_count)
    job.save(update_fields=["command"])
    record(job, Event.Kind.SUBMITTED, by=submission.owner)
    transaction.on_commit(wake_workers)
    return job
