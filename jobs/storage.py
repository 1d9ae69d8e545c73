"""The artifacts storage of a worker whose disk the web does not see: files travel to the web over HTTP."""

import contextlib
import hashlib
import http.client
from typing import Any, Self
from urllib.parse import quote, urlsplit

from django.core.files import File
from django.core.files.storage import Storage, storages
from django.utils.crypto import salted_hmac

from jobs.models import Attempt

BLOCK = 1 << 20  # bytes
TIMEOUT = 30.0  # seconds of silence
DIGEST = "X-Content-SHA256"


class WebAway(ConnectionError):
    """The web does not answer, or cannot just now; it may later."""


class WebRefused(Exception):
    """The web does not take, or give, this file; asking again changes nothing."""


def storage_for(attempt: Attempt) -> Storage:
    """Return the artifacts storage with the right that a running attempt has in it."""
    storage = storages["artifacts"]
    return storage.signed_for(attempt) if isinstance(storage, WebStorage) else storage


def signature(token: object) -> str:
    """Return the proof that who asks holds a lease. The token alone is none: the trainer has it in its environment."""
    return salted_hmac("jobs.transfer", str(token), algorithm="sha256").hexdigest()


class WebStorage(Storage):
    """Files under ``<url>/transfer/``; ``jobs.transfer`` is the other side, which says who may do what."""

    def __init__(self, url: str, authorization: str = "") -> None:
        self.address = url.rstrip("/")
        self._authorization = authorization

    def signed_for(self, attempt: Attempt) -> Self:
        """Return this storage with the right of an attempt that runs."""
        return type(self)(self.address, f"Nightshift {attempt.job_id}:{signature(attempt.token)}")

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        return name  # what is there is replaced

    def exists(self, name: str) -> bool:
        with contextlib.closing(self._ask("HEAD", name, absent=True)) as answer:
            return answer.status != http.client.NOT_FOUND

    def size(self, name: str) -> int:
        with contextlib.closing(self._ask("HEAD", name)) as answer:
            return int(answer.headers["Content-Length"])

    def delete(self, name: str) -> None:
        self._ask("DELETE", name, absent=True).close()

    def _open(self, name: str, mode: str = "rb") -> "File[bytes]":
        return File(self._ask("GET", name), name=name)

    def _save(self, name: str, content: "File[bytes]") -> str:
        digest = hashlib.sha256()
        for block in content.chunks(BLOCK):
            digest.update(block)
        content.seek(0)
        headers = {"Content-Length": str(content.size), DIGEST: digest.hexdigest()}
        self._ask("PUT", name, body=content, headers=headers).close()
        return name

    def _ask(
        self, method: str, name: str, *, body: Any = None, headers: dict[str, str] | None = None, absent: bool = False
    ) -> http.client.HTTPResponse:
        """Return the answer, unread.

        Raises:
            WebAway, WebRefused: there is none, or it is no.
            FileNotFoundError: the file is not there, and may not be ``absent``.
        """
        try:
            answer = self._send(method, name, body, headers or {})
        except (OSError, http.client.HTTPException) as error:
            raise WebAway(f"{self.address} does not answer: {error or type(error).__name__}") from None
        if answer.status < 300 or (absent and answer.status == http.client.NOT_FOUND):
            return answer
        with contextlib.closing(answer):
            raise self._fault(answer, name)

    def _send(self, method: str, name: str, body: Any, headers: dict[str, str]) -> http.client.HTTPResponse:
        parts = urlsplit(self.address)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.netloc, timeout=TIMEOUT, blocksize=BLOCK)
        headers |= {"Authorization": self._authorization, "Connection": "close"}
        # A web that refuses answers before it has read everything, and the rest then finds nobody who listens.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request(method, f"{parts.path}/transfer/{quote(name)}", body=body, headers=headers)
        return connection.getresponse()

    def _fault(self, answer: http.client.HTTPResponse, name: str) -> Exception:
        said = answer.read(200).decode(errors="replace").partition("\n")[0] or answer.reason
        if answer.status == http.client.NOT_FOUND:
            return FileNotFoundError(f"{name} is not on {self.address}")
        if answer.status >= 500:
            return WebAway(f"{self.address} answers {answer.status}: {said}")
        if answer.status < 400:
            return WebRefused(f"{self.address} points elsewhere ({answer.headers['Location']}): name that address")
        return WebRefused(f"{self.address} refuses {name}: {said}")
