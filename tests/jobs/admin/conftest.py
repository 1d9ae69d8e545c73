"""People with different rights, and a job to look at."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.contrib.messages import get_messages
from django.test import Client

from jobs.models import Job
from jobs.services.submission import Submission
from jobs.services.submit import submit_job

SFT = {"data_path": "../dataset/sft-mini.jsonl", "from_weight": "none"}


@pytest.fixture
def boss(db: None) -> User:
    return User.objects.create_superuser("boss")


@pytest.fixture
def mei(db: None) -> User:
    return member("mei", "view_job", "add_job", "view_trainingconfig", "add_trainingconfig", "change_trainingconfig")


@pytest.fixture
def viewer(db: None) -> User:
    return member("viewer", "view_job")


@pytest.fixture
def stranger(db: None) -> User:
    return member("stranger")


def member(name: str, *rights: str) -> User:
    user = User.objects.create_user(name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=rights))
    return user


@pytest.fixture
def browse() -> Callable[[User], Client]:
    """Return a signed-in browser of a person."""

    def signed_in(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return signed_in


@pytest.fixture
def job(mei: User) -> Job:
    """Return a queued SFT job of mei."""
    return submit_job(Submission(training_type="sft", params=SFT, owner=mei, name="first"))


def posted(**values: Any) -> dict[str, Any]:
    """Return a posted SFT form whose paths exist."""
    return {"training_type": "sft", "shown_type": "sft", "start_from": "rule", "dependency_rule": "success"} | {
        "device": "any",
        "submission_key": "6d0fa8a3-06f6-4f1c-8a27-0a3b8a0b8c11",
        **SFT,
        **values,
    }


ADD = "/admin/jobs/job/add/"


def errors_of(response):
    return {name: list(texts) for name, texts in response.context["form"].errors.items()}


def told(response):
    return [str(message) for message in get_messages(response.wsgi_request)]
