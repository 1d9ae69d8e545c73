"""What a person asks when a job is submitted or edited."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User

from jobs.models import Batch, Device, Job, Window


@dataclass(frozen=True, kw_only=True)
class Submission:
    """Everything that is asked of one job."""

    training_type: str
    params: dict[str, Any]
    owner: User
    name: str = ""
    batch: Batch | None = None
    start_from: str = Job.StartFrom.RULE
    depends_on: Job | None = None
    dependency_rule: str = Job.DependencyRule.SUCCESS
    device_request: str = Job.DeviceRequest.ANY
    device: Device | None = None
    device_label: str = ""
    device_count: int = 1
    not_before: datetime | None = None
    window: Window | None = None
    time_limit: int | None = None  # minutes
    priority: int = Job.Priority.NORMAL
    submission_key: str | None = None
    hold: bool = False
