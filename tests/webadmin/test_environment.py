"""A setting that cannot be used ends every command in one line that names the variable and shows no password."""

import os
import subprocess
import sys

import pytest

from jobs.stack.processes import REPOSITORY
from webadmin.environment import Environment, WrongSetting


def manage(home, **variables):
    environment = os.environ | {"NIGHTSHIFT_HOME": str(home), **variables}
    command = [sys.executable, "manage.py", "up"]
    return subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("SECRET_KEY", "", "SECRET_KEY is missing or empty: put a long random one into .env"),
        ("DATABASE_URL", "mysql://a:geheim@db/x", "DATABASE_URL is no database that can be used"),
        ("DATABASE_URL", "geheim", "DATABASE_URL is no database that can be used"),
        ("DATABASE_URL", "postgres://a:geheim@db:port/x", "DATABASE_URL is no database that can be used"),
        ("DATABASE_URL", "sqlite://:memory:", "DATABASE_URL is no database that can be used"),
        ("REDIS_URL", "geheim:6379", "REDIS_URL is no broker that can be used"),
        ("REDIS_URL", "redis://:geheim@broker:port/0", "REDIS_URL is no broker that can be used"),
        ("NIGHTSHIFT_LEASE", "long", "NIGHTSHIFT_LEASE=long is not a number"),
        ("NIGHTSHIFT_GRACE", "-1", "NIGHTSHIFT_GRACE=-1 must be above 0"),
        ("NIGHTSHIFT_LEASE", "10", "NIGHTSHIFT_LEASE must be at least four times NIGHTSHIFT_HEARTBEAT"),
        ("TIME_ZONE", "Mars/Olympus", "TIME_ZONE=Mars/Olympus is no time zone"),
        ("LOG_LEVEL", "quiet", "LOG_LEVEL=QUIET is no level"),
        ("NIGHTSHIFT_HOME", "/dev/null/home", "NIGHTSHIFT_HOME=/dev/null/home cannot be made: Not a directory"),
    ],
)
def test_a_wrong_setting_is_one_line(tmp_path, name, value, said):
    run = manage(**({"home": tmp_path, name: value} if name != "NIGHTSHIFT_HOME" else {"home": value}))
    assert run.returncode == 1
    assert run.stderr.startswith(f"error: {said}")
    assert run.stderr.count("\n") == 1
    assert "geheim" not in run.stderr


def test_a_database_that_does_not_answer_is_one_line(tmp_path):
    run = manage(tmp_path, DATABASE_URL="postgres://a:geheim@127.0.0.1:1/queue", NIGHTSHIFT_PORT="8397")
    assert run.returncode == 1
    assert run.stderr.startswith("CommandError: the database queue cannot be used: connection failed:")
    assert run.stderr.count("\n") == 1
    assert "geheim" not in run.stderr


def test_a_port_that_cannot_be_is_said(tmp_path):
    run = manage(tmp_path, NIGHTSHIFT_PORT="99999")
    assert run.returncode != 0
    assert run.stderr.endswith("99999 is no port; give 1 to 65535, here or in NIGHTSHIFT_PORT\n")


def test_empty_means_unset(monkeypatch, tmp_path):
    for name in ("DATABASE_URL", "REDIS_URL", "TIME_ZONE", "LOG_LEVEL", "NIGHTSHIFT_LEASE"):
        monkeypatch.setitem(Environment.ENVIRON, name, "")
    env = Environment()
    assert env.database("DATABASE_URL", tmp_path / "a.sqlite3")["NAME"] == tmp_path / "a.sqlite3"
    assert env.broker("REDIS_URL") == ""
    assert (env.time_zone("TIME_ZONE"), env.log_level("LOG_LEVEL")) == ("UTC", "INFO")
    assert env.number("NIGHTSHIFT_LEASE", 60.0) == 60.0


def test_a_folder_that_is_missing_is_made_for_its_owner_alone(monkeypatch, tmp_path):
    monkeypatch.setitem(Environment.ENVIRON, "NIGHTSHIFT_HOME", str(tmp_path / "a" / "home"))
    before = os.umask(0)
    try:
        folder = Environment().writable_folder("NIGHTSHIFT_HOME", tmp_path)
    finally:
        os.umask(before)
    assert folder == tmp_path / "a" / "home"
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "url", ["web:8000", "ftp://web", "http://", "http://user:pass@web", "http://web?a=1", "http://[web"]
)
def test_what_is_no_address_of_the_web_is_refused_without_showing_a_password(monkeypatch, url):
    monkeypatch.setitem(Environment.ENVIRON, "NIGHTSHIFT_WEB_URL", url)
    with pytest.raises(WrongSetting) as refused:
        Environment().web_url("NIGHTSHIFT_WEB_URL")
    assert str(refused.value) == "NIGHTSHIFT_WEB_URL is no address of the admin; write it as http://host:8000"


@pytest.mark.parametrize("url", ["", "http://web:8000", "https://web.example.org/nightshift"])
def test_the_address_of_the_web_is_taken_as_it_is(monkeypatch, url):
    monkeypatch.setitem(Environment.ENVIRON, "NIGHTSHIFT_WEB_URL", url)
    assert Environment().web_url("NIGHTSHIFT_WEB_URL") == url
