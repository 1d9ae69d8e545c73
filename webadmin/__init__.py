"""The Django project: settings, URLs and the Celery application. No rules of the queue."""

from webadmin.celery import app as celery_app

__all__ = ["celery_app"]
