"""What ends a run in a known way. Imports no torch."""


class ConfigurationError(Exception):
    """What was asked cannot be run; the message is one line that says what to change."""


class Stopped(Exception):
    """A person or the worker asked the run to end, and its checkpoint is written."""


class Diverged(Exception):
    """A loss or a gradient is no finite number any more; the last checkpoint is from before it."""
