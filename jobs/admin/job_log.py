"""A job's log: followed by offset, so that only new bytes travel, and downloaded whole."""

import re
from collections.abc import Iterator

from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.http import require_GET

from jobs.admin.permissions import number
from jobs.models import Job, LogChunk

LIMIT = 64 * 1024
ESCAPE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]+[0-~]|[@-Z\\-_])")
OPEN_ESCAPE = re.compile(rb"\x1b(?:\[[0-?]{0,100}[ -/]{0,9}|\][^\x07\x1b]{0,200})?$")
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@require_GET
def log(request: HttpRequest, job: Job) -> HttpResponse:
    """Answer with the text from ``offset`` on, at most 64 KiB of the log, and where the next part begins."""
    content, start = read_log(job, number(request.GET.get("offset", "0")))
    content = content if job.is_finished and len(content) < LIMIT else whole_characters(content)
    response = HttpResponse(readable(content), content_type="text/plain; charset=utf-8")
    response["X-Content-Type-Options"] = "nosniff"
    response["X-Next-Offset"] = str(start + len(content))
    response["X-Log-Size"] = str(log_size(job))
    return response


@require_GET
def log_download(request: HttpRequest, job: Job) -> HttpResponseBase:
    """Answer with the whole log as it was written."""
    response = StreamingHttpResponse(_contents(job), content_type="text/plain; charset=utf-8")
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Disposition"] = f'attachment; filename="job-{job.pk}.log"'
    return response


def log_size(job: Job) -> int:
    """Return the number of bytes up to the end of the log."""
    last = job.log_chunks.order_by("-offset").values_list("offset", "length").first()
    return sum(last) if last else 0


def read_log(job: Job, start: int) -> tuple[bytes, int]:
    """Return up to 64 KiB from ``start`` on and where they begin: later than asked when a stretch is missing."""
    first = job.log_chunks.filter(offset__lte=start).order_by("-offset").values_list("offset", flat=True).first()
    content = b""
    for chunk in job.log_chunks.filter(offset__gte=first or 0).order_by("offset").iterator(chunk_size=8):
        if not content and chunk.offset + chunk.length > start:
            start = max(start, chunk.offset)
        if chunk.offset > start + len(content) or len(content) >= LIMIT:
            break
        content += chunk.content[start + len(content) - chunk.offset :]
    return content[:LIMIT], start


def whole_characters(content: bytes) -> bytes:
    """Return ``content`` without a character or an escape sequence that its end cuts in two."""
    content = OPEN_ESCAPE.sub(b"", content)
    for length in range(1, min(4, len(content) + 1)):
        byte = content[-length]
        if byte >= 0xC0:  # a character begins here, and says how long it is
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return content[:-length] if length < needed else content
        if byte < 0x80:
            break
    return content


def readable(content: bytes) -> str:
    """Return text without escape sequences and control characters; bytes that are no UTF-8 become U+FFFD.

    What a progress bar wrote over itself stands line by line.
    """
    text = ESCAPE.sub(b"", content).decode("utf-8", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    return CONTROL.sub("", text)


def _contents(job: Job) -> Iterator[bytes]:
    for chunk in LogChunk.objects.filter(job=job).order_by("offset").iterator(chunk_size=8):
        yield chunk.content
