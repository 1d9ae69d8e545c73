"""What the database keeps. Only ``jobs.services`` changes a status."""

from jobs.models.artifact import Artifact
from jobs.models.attempt import Attempt
from jobs.models.batch import Batch
from jobs.models.event import Event
from jobs.models.failure_pattern import FailurePattern
from jobs.models.host import Host
from jobs.models.job import Job
from jobs.models.limit import Limit
from jobs.models.log_chunk import LogChunk
from jobs.models.metric import Metric
from jobs.models.retention_rule import RetentionRule
from jobs.models.sample import Sample
from jobs.models.training_config import TrainingConfig
from jobs.models.window import Window
from jobs.models.worker import Device, Worker

__all__ = [
    "Artifact",
    "Attempt",
    "Batch",
    "Device",
    "Event",
    "FailurePattern",
    "Host",
    "Job",
    "Limit",
    "LogChunk",
    "Metric",
    "RetentionRule",
    "Sample",
    "TrainingConfig",
    "Window",
    "Worker",
]
