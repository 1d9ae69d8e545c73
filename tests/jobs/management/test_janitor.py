"""The janitor's turns, when one fails."""

from jobs.management.commands.janitor import _turn


class Sweeper:
    def __init__(self, error: Exception) -> None:
        self.error, self.anew = error, 0

    def turn(self) -> None:
        raise self.error

    def watch_anew(self) -> None:
        self.anew += 1


def test_a_fault_that_nobody_thought_of_is_told_and_does_not_end_the_janitor(monkeypatch, caplog):
    monkeypatch.setattr("jobs.management.commands.janitor.close_old_connections", lambda: None)
    sweeper = Sweeper(KeyError("Mars/Base"))
    _turn(sweeper)
    assert "this round failed" in caplog.text
    assert "KeyError: 'Mars/Base'" in caplog.text
    assert sweeper.anew == 0  # no lease looks expired because of it
