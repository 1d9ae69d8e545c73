"""Hosts that share a database and a broker, and nothing else: each has a state folder of its own, as has the web."""

import contextlib
import http.cookiejar
import os
import re
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User

from jobs.models import Device, Job
from jobs.stack.devices import FoundDevice
from jobs.stack.launch import HOST, admin_answers, web_program
from jobs.stack.processes import Child, Program, stop_together
from tests.e2e.live_stack import (
    SECONDS,
    TRAINER,
    LiveStack,
    kill_tree,
    shared_devices,
    shared_jobs,
    wait_for,
    wait_until_registered,
)
from tests.e2e.running_stack import free_port

PASSWORD = "a long one for the tests"


class TwoHosts:
    """Workers on hosts ``a`` and ``b``; web, janitor and broker on a third."""

    def __init__(self, home: Path, folder: Path, **environment: str) -> None:
        self.port = free_port()
        shared = SECONDS | {"NIGHTSHIFT_TRAINER": str(TRAINER), "NIGHTSHIFT_CHECKPOINT_PATIENCE": "3"} | environment
        shared |= {"DATABASE_URL": os.environ.get("DATABASE_URL") or f"sqlite:///{home / 'nightshift.sqlite3'}"}
        shared |= {"REDIS_URL": settings.CELERY_BROKER_URL}
        self.center = LiveStack(home, shared | {"DEBUG": "1"})
        program = web_program(self.port)
        self.web = Child(Program(name="web", argv=program.argv, env=shared | {"DEBUG": "1"}), home / "logs")
        self.a, self.b = (self._host(name, folder / name, shared) for name in ("a", "b"))

    def _host(self, name: str, home: Path, shared: dict[str, str]) -> LiveStack:
        home.mkdir()
        own = {"NIGHTSHIFT_HOME": str(home), "NIGHTSHIFT_HOST": name, "NIGHTSHIFT_WEB_URL": self.address}
        return LiveStack(home, shared | own, [FoundDevice(key=f"GPU-{name}", kind="gpu", host=name, name="Pretended")])

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}"

    def start(self) -> None:
        self.center.start_broker()
        self.center.janitor.start()
        self.web.start()
        for host in (self.a, self.b):
            host.worker.start()
        for host in (self.a, self.b):
            wait_until_registered(host.worker)
        self.wait_for_web()

    def wait_for_web(self) -> None:
        wait_for(lambda: admin_answers(f"{self.address}/admin/"), 30)

    def kill_web(self) -> None:
        kill_tree(self.web)

    def stop(self) -> None:
        for group in ([self.a.worker, self.b.worker, self.center.janitor, self.web], [self.center.broker]):
            stop_together(group)

    def signed_in(self) -> "Browser":
        return Browser(self.address)


class Browser:
    """A person's session over HTTP."""

    def __init__(self, address: str) -> None:
        self.address = address
        User.objects.filter(username="grace").delete()
        User.objects.create_superuser("grace", password=PASSWORD)
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', self.read("/admin/login/").decode())[1]
        form = {"csrfmiddlewaretoken": token, "username": "grace", "password": PASSWORD, "next": "/admin/"}
        self.opener.open(f"{address}/admin/login/", urllib.parse.urlencode(form).encode()).close()

    def read(self, path: str) -> bytes:
        with self.opener.open(f"{self.address}{path}") as answer:
            assert "/login/" not in answer.url or "/login/" in path
            return answer.read()

    def job(self, job: Job, part: str = "change/") -> str:
        return self.read(f"/admin/jobs/job/{job.pk}/{part}").decode()

    def file(self, job: Job, path: str) -> str:
        return self.job(job, f"artifact/?id={job.artifacts.get(path=path).pk}")


@contextlib.contextmanager
def running_hosts(hosts: TwoHosts) -> Iterator[TwoHosts]:
    """Run the hosts; afterwards nothing ran twice at once, and nothing is left."""
    try:
        hosts.start()
        yield hosts
        assert not Job.objects.filter(status=Job.Status.RUNNING).exists()
        assert not Device.objects.exclude(attempt=None).exists(), "a device is still held"
    finally:
        hosts.stop()
    left = [process for stack in (hosts.center, hosts.a, hosts.b) for process in stack.processes()]
    assert left == []
    lives = [*hosts.a.lives(), *hosts.b.lives()]
    assert (shared_jobs(lives), shared_devices(lives)) == ([], [])
