"""Show and read times in the time zone of the person's browser, which a cookie names."""

import zoneinfo
from collections.abc import Callable
from urllib.parse import unquote

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

COOKIE = "timezone"


class TimeZoneMiddleware:
    """Activate the zone for one request; an unknown one means that of the settings."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with timezone.override(named_zone(unquote(request.COOKIES.get(COOKIE, "")))):
            return self.get_response(request)


def named_zone(name: str) -> zoneinfo.ZoneInfo | None:
    """Return the zone, or ``None`` for a name that means none."""
    try:
        return zoneinfo.ZoneInfo(name) if name else None
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        return None
