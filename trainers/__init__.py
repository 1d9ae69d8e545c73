"""The training side: one file per algorithm and what they share. Knows no Django and no Celery."""
