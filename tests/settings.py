"""The settings under which every test runs: a state folder, an environment file and a database of its own."""

import os
import secrets
import tempfile

_HOME = tempfile.TemporaryDirectory(prefix="nightshift-test-")
os.environ["NIGHTSHIFT_HOME"] = _HOME.name
os.environ["NIGHTSHIFT_ENV_FILE"] = os.path.join(_HOME.name, "no.env")
os.environ["SECRET_KEY"] = secrets.token_urlsafe(50)
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["DJANGO_SETTINGS_MODULE"] = "webadmin.settings"  # what a test starts reads the program's own
for name in ("DATABASE_URL", "REDIS_URL", "NIGHTSHIFT_ALLOWED_ROOTS", "NIGHTSHIFT_TRUST_REMOTE_CODE"):
    os.environ.pop(name, None)
if "NIGHTSHIFT_TEST_DATABASE_URL" in os.environ:
    os.environ["DATABASE_URL"] = os.environ["NIGHTSHIFT_TEST_DATABASE_URL"]

from webadmin.settings import *  # noqa: E402, F403  # the environment comes first

STORAGES["staticfiles"] = {  # noqa: F405  # no test collects them
    "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
}
os.makedirs(STATIC_ROOT)  # noqa: F405
