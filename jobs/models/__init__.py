"""What the database keeps. Only ``jobs.services`` changes a status."""

from jobs.models.artifact import Artifact
from jobs.models.attempt import Attempt
from jobs.models.batch import Batch
from jobs.models.event import Event
from jobs.models.job import Job
from jobs.models.log_chunk import LogChunk
from jobs.models.metric import Metric
from jobs.models.sample import Sample
from jobs.models.training_config import TrainingConfig
from jobs.models.worker import Device, Worker

__all__ = [
    "Artifact",
    "Attempt",
    "Batch",
    "Device",
    "Event",
    "Job",
    "LogChunk",
    "Metric",
    "Sample",
    "TrainingConfig",
    "Worker",
]
