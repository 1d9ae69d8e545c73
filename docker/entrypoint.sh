#!/bin/sh
# Run one part of Nightshift; it becomes process 1's child (compose sets `init: true`) and receives SIGTERM itself.
set -eu
cd "$(dirname "$0")/.."

case "${1:-}" in
  web)
    python manage.py migrate --noinput
    python manage.py collectstatic --noinput
    exec gunicorn webadmin.wsgi --bind "${NIGHTSHIFT_BIND:-0.0.0.0:8000}" --no-control-socket \
      --workers "${WEB_WORKERS:-2}" --worker-class gthread --threads 4
    ;;
  janitor) exec python manage.py janitor ;;
  worker) exec python manage.py gpu_workers ;;
  *)
    echo "usage: entrypoint.sh web|janitor|worker" >&2
    exit 2
    ;;
esac
