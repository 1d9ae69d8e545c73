"""The time zone of the browser."""

import pytest
from django.http import HttpResponse
from django.test import RequestFactory
from django.utils import timezone

from webadmin.timezone import TimeZoneMiddleware


@pytest.mark.parametrize(
    ("cookie", "zone"),
    [
        ("Asia/Shanghai", "Asia/Shanghai"),
        ("Asia%2FShanghai", "Asia/Shanghai"),
        ("", "UTC"),
        ("Nowhere/City", "UTC"),
        ("../../etc/passwd", "UTC"),
        ("Asia", "UTC"),
    ],
)
def test_a_request_is_answered_in_the_zone_its_cookie_names(cookie, zone):
    request = RequestFactory().get("/")
    request.COOKIES["timezone"] = cookie
    answer = TimeZoneMiddleware(lambda _request: HttpResponse(timezone.get_current_timezone_name()))(request)
    assert answer.content.decode() == zone
    assert timezone.get_current_timezone_name() == "UTC"
