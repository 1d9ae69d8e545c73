"""The container files name only files, targets, commands and settings that exist."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import get_commands

REPOSITORY = Path(__file__).resolve().parents[2]
DOCKER = REPOSITORY / "docker"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return yaml.safe_load((DOCKER / "compose.yaml").read_text())


def test_compose_has_the_parts_of_a_teams_installation(compose):
    assert set(compose["services"]) == {"postgres", "redis", "web", "janitor", "worker"}


def test_every_build_names_a_target_of_the_dockerfile(compose):
    targets = set(re.findall(r"^FROM .+ AS (\w+)$", (DOCKER / "Dockerfile").read_text(), re.MULTILINE))
    builds = [service["build"] for service in compose["services"].values() if "build" in service]
    assert [build["target"] for build in builds] == ["web", "web", "worker"]
    assert {build["target"] for build in builds} <= targets
    for build in builds:
        assert (DOCKER / build["context"]).resolve() == REPOSITORY
        assert (DOCKER / build["context"] / build["dockerfile"]).is_file()


def test_every_command_is_one_that_the_entrypoint_knows(compose):
    script = (DOCKER / "entrypoint.sh").read_text()
    known = set(re.findall(r"^  (\w+)\)", script, re.MULTILINE))
    assert {service["command"][0] for service in compose["services"].values() if "build" in service} == known


def test_every_management_command_of_the_entrypoint_exists():
    named = set(re.findall(r"manage\.py (\w+)", (DOCKER / "entrypoint.sh").read_text()))
    assert named == {"migrate", "collectstatic", "janitor", "gpu_workers"}
    assert named <= set(get_commands())


def test_the_entrypoint_refuses_an_unknown_part():
    run = subprocess.run([DOCKER / "entrypoint.sh", "shell"], capture_output=True, text=True)
    assert run.returncode == 2
    assert run.stderr == "usage: entrypoint.sh web|janitor|worker\n"


def test_every_volume_is_declared_and_every_dependency_has_a_healthcheck(compose):
    services = compose["services"]
    for service in services.values():
        named = {volume.partition(":")[0] for volume in service.get("volumes", []) if volume[0].isalpha()}
        assert named <= set(compose["volumes"])
        assert all("healthcheck" in services[name] for name in service.get("depends_on", {}))


def test_every_variable_that_compose_sets_is_one_that_the_example_explains(compose):
    example = (REPOSITORY / ".env.example").read_text()
    assert all(re.search(rf"^#?{name}=", example, re.MULTILINE) for name in compose["services"]["web"]["environment"])


def test_the_web_image_leaves_out_what_only_trainers_import():
    before, _, training = (REPOSITORY / "requirements.txt").read_text().partition("\n# Training\n")
    assert "torch==" not in before
    assert {"Django", "celery", "pydantic"} <= {re.split(r"[\[=]", line)[0] for line in before.splitlines()}
    assert training.startswith("torch==")


def test_copied_files_exist():
    for source in re.findall(r"^COPY (\S+) ", (DOCKER / "Dockerfile").read_text(), re.MULTILINE):
        assert (REPOSITORY / source).exists()
