import subprocess

import pytest

from trainers import revision
from trainers.revision import code_revision


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    monkeypatch.delenv("NIGHTSHIFT_REVISION", raising=False)
    monkeypatch.setattr(revision, "REPOSITORY", tmp_path)
    return tmp_path


def git(folder, *arguments):
    command = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@y", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_a_clean_checkout_is_its_commit_and_a_changed_one_is_marked(checkout):
    git(checkout, "init")
    (checkout / "code.py").write_text("1")
    git(checkout, "add", "code.py")
    git(checkout, "commit", "-m", "x")
    head = git(checkout, "rev-parse", "--short=12", "HEAD")
    assert code_revision() == head
    (checkout / "code.py").write_text("2")
    assert code_revision() == f"{head}-dirty"


def test_outside_a_checkout_there_is_none(checkout, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(checkout.parent))
    assert code_revision() is None


def test_an_image_says_what_it_was_built_from(checkout, monkeypatch):
    monkeypatch.setenv("NIGHTSHIFT_REVISION", "v1")
    assert code_revision() == "v1"
