"""A stop that was asked for by Ctrl-C or SIGTERM, kept as a flag so that everything can end in order."""

import signal
from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopFlag:
    """Callable that says whether a stop was asked for; asking again changes nothing."""

    def __init__(self) -> None:
        self.asked = False
        for number in STOP_SIGNALS:
            signal.signal(number, self._ask)

    def __call__(self) -> bool:
        return self.asked

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True
