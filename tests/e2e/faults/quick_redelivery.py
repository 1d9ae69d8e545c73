"""The program's settings with a broker that takes back what is unacknowledged for three seconds."""

from webadmin.settings import *  # noqa: F403

CELERY_BROKER_TRANSPORT_OPTIONS = CELERY_BROKER_TRANSPORT_OPTIONS | {  # noqa: F405
    "visibility_timeout": 3,
    "unacked_restore_interval": 1,
    "unacked_restore_throttle": 1,
}
