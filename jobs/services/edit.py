"""Change what a waiting job asks for, as long as it has not started."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from jobs.models import Event, Job
from jobs.services.events import record
from jobs.services.lifecycle import CHANGEABLE_ON_RESUME, refusal
from jobs.services.needs import hold_weights, named_runs
from jobs.services.submission import Submission
from jobs.services.submit import asked_columns, config_for, frozen_command
from jobs.services.wake import wake_workers
from jobs.services.wishes import wrong_priority

# What an event tells of; the other columns follow from these and from the parameters.
# fmt: off
TOLD = (
    "name", "start_from", "depends_on", "dependency_rule", "device_request", "device", "device_label", "device_count",
    "not_before", "window", "time_limit", "priority",
)
# fmt: on
CHANGEABLE_WISHES = frozenset(TOLD) - {"device_count"}
NOT_IN_FORMS = ("from_resume",)  # kept as it is

Changes = dict[str, tuple[Any, Any]]


def edit_job(job: Job, submission: Submission, *, by: User) -> None:
    """Let a held or queued job ask for what ``submission`` does; its type, owner and batch stay.

    Raises:
        NotPossible: it started or ended meanwhile.
        ValidationError: a parameter or a wish is wrong, or cannot change any more; messages by field name.
    """
    kept = {name: job.params[name] for name in NOT_IN_FORMS if name in job.params}
    submission = replace(submission, params=submission.params | kept)
    config = config_for(submission)
    columns = asked_columns(submission, config)
    with transaction.atomic():
        old = _locked(job, submission, columns["params"])
        changes = _changes(old, columns)
        _refuse(old, submission, changes, by=by)
        if old.checkpoint_step is None:
            hold_weights(columns["params"], start_from=submission.start_from)
        if changes:
            command = frozen_command(config, job.run_dir, submission.device_count)
            Job.objects.filter(pk=job.pk, status__in=Job.WAITING).update(**columns, command=command)
            record(old, Event.Kind.EDITED, by=by, detail=_told(changes))
            transaction.on_commit(wake_workers)
    job.refresh_from_db()


def _locked(job: Job, submission: Submission, params: dict[str, Any]) -> Job:
    """Return the job as it stands, under the locks of its row and of all those that it will wait for.

    No claim takes it then, and of two edits that together close a circle the second one sees the first. The rows are
    locked in the order in which others lock them.
    """
    numbers = {job.pk, *_chain(submission.depends_on), *named_runs(params).values()}
    list(Job.objects.select_for_update().filter(pk__in=numbers).order_by("pk").values_list("pk"))
    old = Job.objects.get(pk=job.pk)
    if old.status not in Job.WAITING:
        raise refusal(old)
    return old


def _chain(job: Job | None) -> list[int]:
    """Return a job and all that it waits for, one after another, by number."""
    numbers: list[int] = []
    number = job.pk if job else None
    while number is not None and number not in numbers:
        numbers.append(number)
        number = Job.objects.filter(pk=number).values_list("depends_on", flat=True).first()
    return numbers


def _changes(old: Job, columns: dict[str, Any]) -> Changes:
    wishes = {name: (getattr(old, name), columns[name]) for name in TOLD}
    params = {name: (old.params.get(name), value) for name, value in columns["params"].items()}
    return {name: (was, now) for name, (was, now) in (wishes | params).items() if was != now}


def _refuse(old: Job, submission: Submission, changes: Changes, *, by: User) -> None:
    wrong: dict[str, list[str]] = {}
    if old.training_type != submission.training_type:
        wrong["training_type"] = [_("cannot be changed; submit another job")]
    if old.pk in _chain(submission.depends_on):
        wrong["depends_on"] = [_("the job would wait for itself")]
    if "priority" in changes:
        wrong |= wrong_priority(by, submission.priority)
    if old.checkpoint_step is not None:
        fixed = set(changes) - CHANGEABLE_ON_RESUME - CHANGEABLE_WISHES
        told = [_("cannot be changed: the job continues from its checkpoint")]
        wrong |= {_field(name, submission): told for name in fixed}
    if wrong:
        raise ValidationError(wrong)


def _field(name: str, submission: Submission) -> str:
    """Return the field that decides a parameter."""
    return "depends_on" if name == "init_path" and submission.start_from == Job.StartFrom.JOB else name


def _told(changes: Changes) -> str:
    return ", ".join(f"{name} {_word(was)} → {_word(now)}" for name, (was, now) in changes.items())


def _word(value: Any) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M %Z}"
    if isinstance(value, Job):
        return str(value.pk)
    return "none" if value in (None, "") else str(value)
