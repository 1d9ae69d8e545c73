"""Every test runs against a state folder, an environment file and a database of its own."""

import os
import secrets
import tempfile

_HOME = tempfile.TemporaryDirectory(prefix="nightshift-test-")
os.environ["NIGHTSHIFT_HOME"] = _HOME.name
os.environ["NIGHTSHIFT_ENV_FILE"] = os.path.join(_HOME.name, "no.env")
os.environ["SECRET_KEY"] = secrets.token_urlsafe(50)
os.environ["HF_HUB_OFFLINE"] = "1"
for name in ("DATABASE_URL", "REDIS_URL", "NIGHTSHIFT_ALLOWED_ROOTS", "NIGHTSHIFT_TRUST_REMOTE_CODE"):
    os.environ.pop(name, None)
