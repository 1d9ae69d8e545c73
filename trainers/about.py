"""What a person is told of a training parameter, and where it stands. Imports no torch."""

from dataclasses import dataclass
from enum import StrEnum


class Group(StrEnum):
    """Where a parameter stands in the form and in ``--help``, in this order."""

    BASIC = "Basic"
    ALGORITHM = "Algorithm"
    MODEL = "Model"
    SAVE = "Save and resume"
    HARDWARE = "Hardware"


class PathKind(StrEnum):
    """What a text parameter names on disk."""

    FILE = "file"
    FOLDER = "folder"
    OUTPUT = "output"


@dataclass(frozen=True, kw_only=True)
class About:
    """What a person is told of a parameter, in English and in Chinese."""

    label: str
    label_zh: str
    help: str
    help_zh: str
    group: Group = Group.BASIC
    expert: bool = False
    path: PathKind | None = None
