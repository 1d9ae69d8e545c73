"""Settings, read from the environment and from ``.env`` (``.env.example`` names every variable)."""

import os
from pathlib import Path

from jobs.stack.broker import broker_url
from webadmin.environment import Environment, WrongSetting
from webadmin.theme import UNFOLD as UNFOLD

BASE_DIR = Path(__file__).resolve().parent.parent
env = Environment()
Environment.read_env(env.str("NIGHTSHIFT_ENV_FILE", str(BASE_DIR / ".env")))

NIGHTSHIFT_HOME = env.writable_folder("NIGHTSHIFT_HOME", BASE_DIR / ".nightshift")
os.environ["NIGHTSHIFT_HOME"] = str(NIGHTSHIFT_HOME)  # `trainers.paths` and whatever is started read it from there

SECRET_KEY = env.secret("SECRET_KEY")
DEBUG = env.bool("DEBUG", False)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["127.0.0.1", "localhost"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])
if env.bool("BEHIND_TLS", False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_SSL_REDIRECT = True
    SECURE_HSTS_SECONDS = 31_536_000
    SESSION_COOKIE_SECURE = True
    CSRF_COOKIE_SECURE = True
    # HSTS for subdomains and preloading bind a whole domain: its owner's decision, not one site's.
    SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.filters",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "jobs",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "webadmin.timezone.TimeZoneMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "webadmin.urls"
WSGI_APPLICATION = "webadmin.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES = {"default": env.database("DATABASE_URL", NIGHTSHIFT_HOME / "nightshift.sqlite3")}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # A write that begins as a read cannot be locked out half-way: with IMMEDIATE every transaction waits its turn.
    DATABASES["default"]["OPTIONS"] = {
        "timeout": 20,
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
else:
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
    DATABASES["default"]["CONN_MAX_AGE"] = 60
    # A server that vanished without a word is an error within seconds, long before a lease runs out.
    DATABASES["default"].setdefault("OPTIONS", {}).update(connect_timeout=10, tcp_user_timeout=20_000)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
TIME_ZONE = env.time_zone("TIME_ZONE")
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = NIGHTSHIFT_HOME / "static"
MEDIA_ROOT = NIGHTSHIFT_HOME / "uploads"
DATA_UPLOAD_MAX_NUMBER_FIELDS = 2_000
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
    # Where a run's weights and result are downloaded from: the run folders, or a folder that all hosts share.
    "artifacts": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": env.str("NIGHTSHIFT_ARTIFACTS", str(NIGHTSHIFT_HOME / "runs"))},
    },
}
if NIGHTSHIFT_WEB_URL := env.web_url("NIGHTSHIFT_WEB_URL"):  # a worker's host that shares no folder with the web
    STORAGES["artifacts"] = {"BACKEND": "jobs.storage.WebStorage", "OPTIONS": {"url": NIGHTSHIFT_WEB_URL}}

# A message only says that there may be work, so losing or doubling one is harmless.
CELERY_BROKER_URL = broker_url(env.broker("REDIS_URL"), NIGHTSHIFT_HOME)
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_DISABLE_PREFETCH = True
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_CHANNEL_ERROR_RETRY = True
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_SERIALIZER = "json"
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 3600,
    "socket_timeout": 30,
    "socket_connect_timeout": 5,
    "socket_keepalive": True,
    "health_check_interval": 25,
    "global_keyprefix": "nightshift:",
    "client_name": "nightshift",
}

# Seconds. A lease outlives several heartbeats, and a trainer is killed before its lease can expire.
NIGHTSHIFT_LEASE = env.number("NIGHTSHIFT_LEASE", 60.0)
NIGHTSHIFT_HEARTBEAT = env.number("NIGHTSHIFT_HEARTBEAT", 5.0)
NIGHTSHIFT_GRACE = env.number("NIGHTSHIFT_GRACE", 30.0)
if NIGHTSHIFT_LEASE < 4 * NIGHTSHIFT_HEARTBEAT:  # else one late heartbeat would end a trainer
    raise WrongSetting("NIGHTSHIFT_LEASE must be at least four times NIGHTSHIFT_HEARTBEAT")
NIGHTSHIFT_MAX_REQUEUES = 3
# After so long a job of several devices keeps devices free for itself, and a job whose host is away starts elsewhere.
NIGHTSHIFT_GANG_PATIENCE = env.number("NIGHTSHIFT_GANG_PATIENCE", 600.0)
NIGHTSHIFT_CHECKPOINT_PATIENCE = env.number("NIGHTSHIFT_CHECKPOINT_PATIENCE", 600.0)
# Bytes that stay free on a host's disk: with less, nothing new starts there.
NIGHTSHIFT_DISK_RESERVE = int(env.number("NIGHTSHIFT_DISK_RESERVE", 2_000_000_000))
# Bytes of one file that the web takes from a worker, and seconds for which a worker tries again while it is away.
NIGHTSHIFT_UPLOAD_LIMIT = int(env.number("NIGHTSHIFT_UPLOAD_LIMIT", 200_000_000_000))
NIGHTSHIFT_WEB_PATIENCE = env.number("NIGHTSHIFT_WEB_PATIENCE", 3600.0)
NIGHTSHIFT_LOG_LIMIT = int(env.number("NIGHTSHIFT_LOG_LIMIT", 200_000_000))

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": env.log_level("LOG_LEVEL")},
}
