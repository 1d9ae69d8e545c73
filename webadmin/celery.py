"""The Celery application. Its settings are the ``CELERY_`` lines of the Django settings."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webadmin.settings")

app = Celery("nightshift")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["jobs"])
