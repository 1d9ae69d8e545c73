"""Trying again while the web is away."""

import pytest

from jobs.storage import WebAway, WebRefused
from jobs.worker.patience import GaveUp, keep_trying


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr("jobs.worker.patience.PAUSE", 0.01)
    monkeypatch.setattr("jobs.worker.patience.LOOK", 0.001)


def answers_after(failures):
    left = [WebAway("http://web does not answer")] * failures

    def action():
        if left:
            raise left.pop()
        return "done"

    return action


def test_it_goes_on_when_the_web_is_back_and_tells_once_that_it_was_away():
    notes = []
    assert keep_trying(answers_after(3), lambda: False, notes.append) == "done"
    assert notes == ["http://web does not answer; trying again for 60 minutes"]


def test_it_gives_up_after_its_patience_with_what_the_web_did(settings):
    settings.NIGHTSHIFT_WEB_PATIENCE = 0.0
    with pytest.raises(GaveUp, match="http://web does not answer"):
        keep_trying(answers_after(1000), lambda: False, lambda _: None)


def test_it_stops_when_there_is_something_else_to_do():
    with pytest.raises(GaveUp):
        keep_trying(answers_after(1000), lambda: True, lambda _: None)


def test_a_refusal_is_not_tried_again():
    calls = []

    def refused():
        calls.append(1)
        raise WebRefused("no")

    with pytest.raises(WebRefused):
        keep_trying(refused, lambda: False, lambda _: None)
    assert calls == [1]
