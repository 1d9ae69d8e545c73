"""What may be wished for a job beside its parameters, and what cannot be."""

from typing import Any

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from jobs.models import Job
from jobs.services.submission import Submission

LONGEST_LIMIT = 527_040  # minutes: a year
MOST_DEVICES = 128  # of one host


def refused_wishes(submission: Submission) -> dict[str, list[str]]:
    """Return what is wrong with what a submission wishes, by field name."""
    wrong = _refused_start(submission) | _refused_devices(submission)
    if submission.priority not in Job.Priority.values:
        wrong["priority"] = [_("-1 (low), 0 (normal) or 1 (high)")]
    if refused := wrong_time_limit(submission.time_limit):
        wrong["time_limit"] = refused
    return wrong


def wrong_time_limit(minutes: Any) -> list[str]:
    """Return what is wrong with a time limit, if anything is; ``None`` is no limit."""
    if minutes is None or (isinstance(minutes, int) and 0 < minutes <= LONGEST_LIMIT):
        return []
    return [_("whole minutes, from 1 to %(longest)d, or none") % {"longest": LONGEST_LIMIT}]


def may_have_priority(person: User, priority: int) -> bool:
    """Tell whether a person may give jobs a priority: high needs a right of its own."""
    return priority < Job.Priority.HIGH or person.has_perm("jobs.high_priority")


def wrong_priority(person: User, priority: int) -> dict[str, list[str]]:
    """Return that a person may not give jobs a priority, at its field."""
    if may_have_priority(person, priority):
        return {}
    told = _("%(person)s may not queue at high priority; choose normal, or ask an administrator for the right")
    return {"priority": [told % {"person": person}]}


def _refused_start(submission: Submission) -> dict[str, list[str]]:
    wrong: dict[str, list[str]] = {}
    init_path = submission.params.get("init_path")
    if submission.start_from == Job.StartFrom.FOLDER and not init_path:
        wrong["init_path"] = [_("choose the model folder to start from")]
    if submission.start_from == Job.StartFrom.RULE and init_path:
        wrong["init_path"] = [_("needs “start from: a model folder”")]
    if submission.start_from == Job.StartFrom.JOB and submission.dependency_rule != Job.DependencyRule.SUCCESS:
        wrong["dependency_rule"] = [_("weights are there only after success")]
    return wrong


def _refused_devices(submission: Submission) -> dict[str, list[str]]:
    wrong: dict[str, list[str]] = {}
    if (submission.device_request == Job.DeviceRequest.NAMED) != (submission.device is not None):
        wrong["device"] = [_("choose a device exactly when a named device is asked for")]
    if (submission.device_request == Job.DeviceRequest.LABEL) != bool(submission.device_label):
        wrong["device"] = [_("name a label exactly when a device with a label is asked for")]
    if not 1 <= submission.device_count <= MOST_DEVICES:
        wrong["device_count"] = [_("from 1 to %(most)d devices") % {"most": MOST_DEVICES}]
    if submission.device_count > 1 and submission.device is not None:
        wrong["device_count"] = [_("exactly one when it is a named device")]
    return wrong
