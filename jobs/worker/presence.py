"""A worker's row: registered when Celery is ready, kept fresh by a thread of the main process, closed at the end."""

import logging
import os
import threading
from typing import Any

import billiard.pool
from celery.signals import celeryd_init, worker_process_init, worker_ready, worker_shutdown, worker_shutting_down
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.utils import timezone

from jobs.models import Device, Worker
from jobs.services.hosts import touch_host
from jobs.services.wake import publish
from jobs.stack.devices import FoundDevice
from jobs.worker.disk import report_disk
from jobs.worker.drain import clear_drain, request_drain
from jobs.worker.link import persist
from jobs.worker.removal import keep_clear

logger = logging.getLogger(__name__)
_stopping = threading.Event()
_database = threading.Lock()
# A pool process that is forked while the heartbeat talks to SQLite would inherit its locks.
os.register_at_fork(before=_database.acquire, after_in_parent=_database.release, after_in_child=_database.release)


def connect_signals() -> None:
    """Let Celery's signals keep the row."""
    billiard.pool.GUARANTEE_MESSAGE_CONSUMPTION_RETRY_LIMIT = 10  # tenths of a second at exit; results say nothing here
    celeryd_init.connect(_begin)
    worker_ready.connect(_announce)
    worker_process_init.connect(_look_for_work)
    worker_shutting_down.connect(_drain)
    worker_shutdown.connect(_end)


def register_worker(name: str, found: FoundDevice) -> Worker:
    """Write the worker, its device and its host to the database; labels that an operator gave there stay."""
    touch_host(found.host)
    report_disk(found.host)
    values = found.model_dump(exclude={"key"} if found.labels else {"key", "labels"})
    device, _ = Device.objects.update_or_create(key=found.key, defaults=values)
    now = timezone.now()
    row = {"host": found.host, "pid": os.getpid(), "device": device, "queue": found.queue}
    times = {"started_at": now, "heartbeat_at": now, "stopped_at": None}
    return Worker.objects.update_or_create(name=name, defaults=row | times)[0]


def _begin(sender: str, **_: Any) -> None:
    clear_drain(sender)


def _announce(sender: Any, **_: Any) -> None:
    found = FoundDevice.of_worker()
    with _database:
        persist(lambda: register_worker(sender.hostname, found))
        connection.close()
    names = (sender.hostname, found.host)
    threading.Thread(target=_keep_fresh, args=names, name="heartbeat", daemon=True).start()
    threading.Thread(target=keep_clear, args=(_stopping.wait, _database), name="removal", daemon=True).start()
    publish(found.queue)


def _look_for_work(**_: Any) -> None:
    """Wake this worker when a pool process replaces one that died; Celery kills one that is not up in seconds."""
    threading.Thread(target=publish, args=(FoundDevice.of_worker().queue,), daemon=True).start()


def _keep_fresh(name: str, host: str) -> None:
    while not _stopping.wait(settings.NIGHTSHIFT_HEARTBEAT):
        with _database:
            try:
                Worker.objects.filter(name=name).update(heartbeat_at=timezone.now())
                touch_host(host)
                report_disk(host)
            except Exception as error:  # whatever it is, a thread that ends would make this worker pass for dead
                logger.warning("heartbeat not written: %r", error)
            finally:
                connection.close()


def _drain(sender: str, **_: Any) -> None:
    request_drain(sender)


def _end(sender: Any, **_: Any) -> None:
    _stopping.set()
    with _database:
        try:
            Worker.objects.filter(name=sender.hostname).update(stopped_at=timezone.now())
        except (DatabaseError, InterfaceError) as error:
            logger.warning("end not written: %s", error)
        finally:
            connection.close()
