"""Where workers of other hosts bring the files of their runs, and fetch the weights that their jobs start from.

A request carries the signature of a lease (``jobs.storage``). It writes only below the job that holds the lease, only
while that runs, and reads besides only the weights of jobs that this one starts from.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from django.conf import settings
from django.core.files.storage import storages
from django.http import FileResponse, HttpRequest, HttpResponse, HttpResponseBase
from django.utils.crypto import constant_time_compare
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from jobs.models import Job
from jobs.services.weights import weight_sources
from jobs.storage import BLOCK, DIGEST, signature

MODEL = re.compile(r"model(/(?!\.+(/|$))[A-Za-z0-9_.+-]+)+")  # no part consists of dots
OTHERS = ("result.json", "config.json", "log.txt")
LONGEST = 255  # characters, as an artifact's row keeps


class Refused(Exception):
    """The request gets this status and sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


@csrf_exempt  # no session and no cookie: the signature is the right
@require_http_methods(["GET", "HEAD", "PUT", "DELETE"])
def transfer(request: HttpRequest, job: int, path: str) -> HttpResponseBase:
    """Answer one request for one file of a run."""
    try:
        asker = asking_job(request)
        writes = request.method in ("PUT", "DELETE")
        if asker.pk != job and (writes or job not in weight_sources(asker) or not path.startswith("model/")):
            raise Refused(403, f"job {asker.pk} has no business with this file of job {job}")
        file = confined(job, path)
        if request.method == "PUT":
            receive(request, file)
        elif request.method == "DELETE":
            remove(file)
        return HttpResponse(status=204) if writes else send(request, file)
    except Refused as refused:
        told = str(refused)  # as the reason, too: the answer to HEAD has no body
        return HttpResponse(f"{told}\n", status=refused.status, reason=told, content_type="text/plain; charset=utf-8")


def asking_job(request: HttpRequest) -> Job:
    """Return the running job whose lease the request is signed with."""
    found = re.fullmatch(r"Nightshift (\d{1,18}):([0-9a-f]{64})", request.headers.get("Authorization", ""))
    job = Job.objects.filter(pk=int(found[1]), status=Job.Status.RUNNING).first() if found else None
    if found is None or job is None or not constant_time_compare(signature(job.lease_token), found[2]):
        raise Refused(403, "not signed for a running attempt; is SECRET_KEY the same on every host?")
    return job


def confined(job: int, path: str) -> Path:
    """Return where a file of a run lies: a name that a run uses, and no link that leads out of the folder."""
    if len(path) > LONGEST or not (path in OTHERS or MODEL.fullmatch(path)):
        raise Refused(400, "no file of a run has this name")
    try:
        root = Path(storages["artifacts"].path("")).resolve()
    except NotImplementedError:
        raise Refused(409, "the web keeps files in no folder of its own: give this host the web's storage") from None
    file = root / str(job) / path
    if file.is_dir():
        raise Refused(400, "a folder has this name")
    if not file.parent.resolve().is_relative_to(root / str(job)) or file.is_symlink():
        raise Refused(400, "a link leads out of the run's folder")
    return file


def receive(request: HttpRequest, file: Path) -> None:
    """Put the body in the file's place once it is whole: nobody ever sees half of it."""
    announced = request.META.get("CONTENT_LENGTH") or ""
    if not re.fullmatch(r"[0-9]{1,18}", announced):
        raise Refused(411, "Content-Length is missing")
    size = int(announced)
    if size > settings.NIGHTSHIFT_UPLOAD_LIMIT:
        raise Refused(413, f"{size} bytes are more than NIGHTSHIFT_UPLOAD_LIMIT, {settings.NIGHTSHIFT_UPLOAD_LIMIT}")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=file.parent, prefix=".incoming-", delete=False) as incoming:
            try:
                for block in checked_blocks(request, size):
                    incoming.write(block)
                incoming.flush()
                os.fsync(incoming.fileno())
                asking_job(request)  # a long upload may have outlived its lease
                os.replace(incoming.name, file)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(incoming.name)
    except OSError as error:
        raise Refused(507, f"the web cannot keep it: {error.strerror or type(error).__name__}") from None


def checked_blocks(request: HttpRequest, size: int) -> Iterator[bytes]:
    """Yield the body; raise at its end unless it has the size and the digest that were announced."""
    digest, got = hashlib.sha256(), 0
    while block := request.read(min(BLOCK, size - got) or 1):
        digest.update(block)
        got += len(block)
        yield block
    if got != size or digest.hexdigest() != request.headers.get(DIGEST):
        raise Refused(422, f"{got} of {size} bytes arrived, or others than were sent")


def remove(file: Path) -> None:
    """Remove the file if it is there."""
    with suppress(FileNotFoundError, NotADirectoryError):
        file.unlink()


def send(request: HttpRequest, file: Path) -> HttpResponseBase:
    """Answer with the file, or with its size."""
    try:
        if request.method == "HEAD":
            return HttpResponse(headers={"Content-Length": str(file.stat().st_size)})
        return FileResponse(file.open("rb"), content_type="application/octet-stream")
    except (FileNotFoundError, NotADirectoryError):
        raise Refused(404, "the file is not there") from None
