"""What the documents name exists."""

import re
from pathlib import Path

import pytest

from trainers.configs import TRAINING_TYPES

REPOSITORY = Path(__file__).resolve().parents[1]
DOCUMENTS = ("README.md", "README.zh-CN.md", "CONTRIBUTING.md", "docker/README.md", "dataset/README.md")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_link_and_picture_leads_to_a_file(name):
    document = REPOSITORY / name
    targets = re.findall(r"\]\(([^)#:]+)\)", document.read_text())
    assert [target for target in targets if not (document.parent / target).exists()] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_make_target_exists(name):
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:`|^)make ([a-z-]+)", (REPOSITORY / name).read_text(), re.MULTILINE))
    assert named <= targets


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_the_table_of_training_types_lists_each_of_them(name):
    rows = re.findall(r"^\| ([\w -]+) \| `(\w+)` \|", (REPOSITORY / name).read_text(), re.MULTILINE)
    assert rows == [(config.title, type_name) for type_name, config in TRAINING_TYPES.items()]


def test_every_variable_that_the_settings_read_is_explained_in_the_example():
    settings = (REPOSITORY / "webadmin" / "settings.py").read_text()
    read = set(re.findall(r'env\.\w+\(\s*"(\w+)"', settings)) - {"NIGHTSHIFT_ENV_FILE"}
    explained = set(re.findall(r"^#?(\w+)=", (REPOSITORY / ".env.example").read_text(), re.MULTILINE))
    assert read <= explained
