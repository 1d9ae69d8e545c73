"""What the environment and ``.env`` say. A value that cannot be used is refused in one line that names the variable."""

import logging
import os
import zoneinfo
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

BROKERS = ("redis", "rediss", "redis+socket", "sentinel")
DATABASES = ("sqlite", "postgres", "postgresql")


class WrongSetting(ImproperlyConfigured):
    """An operator has to change a variable; the message says which and how."""


class Environment(environ.Env):
    """The variables, each as its kind."""

    def get_value(self, var: str, *arguments: Any, **options: Any) -> Any:
        """Return a variable's value; empty means unset.

        Raises:
            WrongSetting: it is not of its kind.
        """
        try:
            return super().get_value(var, *arguments, **options)
        except (ValueError, LookupError) as error:
            raise WrongSetting(f"{var} cannot be used: {error}") from None

    def number(self, var: str, default: float) -> float:
        """Return a number above zero."""
        text = self.str(var, "") or str(default)
        try:
            value = float(text)
        except ValueError:
            raise WrongSetting(f"{var}={text} is not a number") from None
        if not 0 < value < float("inf"):
            raise WrongSetting(f"{var}={text} must be above 0")
        return value

    def secret(self, var: str) -> str:
        """Return a value that has to be there."""
        value: str = self.str(var, "")
        if not value:
            make = "python -c 'import secrets; print(secrets.token_urlsafe(50))'"
            raise WrongSetting(f"{var} is missing or empty: put a long random one into .env ({make})")
        return value

    def writable_folder(self, var: str, default: Path) -> Path:
        """Return a folder, made for its owner alone where it is missing."""
        folder = Path(self.str(var, "") or default).expanduser().resolve()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise WrongSetting(f"{var}={folder} cannot be made: {error.strerror}") from None
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK) or os.statvfs(folder).f_flag & os.ST_RDONLY:
            raise WrongSetting(f"{var}={folder} cannot be written to by this user")
        return folder

    def database(self, var: str, default: Path) -> dict[str, Any]:
        """Return Django's settings of the database, else of a SQLite file. The message shows no password."""
        if not (url := self.str(var, "")):
            return {"ENGINE": "django.db.backends.sqlite3", "NAME": default}
        try:
            found: dict[str, Any] = self.db_url_config(url) if url.partition("://")[0] in DATABASES else {}
        except ValueError:
            found = {}
        if found.get("NAME") in (None, "", ":memory:"):  # every process would see a memory of its own
            usable = "postgres://user:password@host:5432/name or sqlite:////folder/file.sqlite3"
            raise WrongSetting(f"{var} is no database that can be used; write it as {usable}")
        return found

    def broker(self, var: str) -> str:
        """Return the address of the team's broker, or nothing. The message shows no password."""
        url: str = self.str(var, "")
        try:
            parts = urlsplit(url)
            usable = parts.scheme in BROKERS and (parts.port is None or parts.port > 0)
        except ValueError:
            usable = False
        if url and not usable:
            raise WrongSetting(f"{var} is no broker that can be used; write it as redis://:password@host:6379/0")
        return url

    def web_url(self, var: str) -> str:
        """Return the address of the web host, or nothing."""
        url: str = self.str(var, "")
        try:
            parts = urlsplit(url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if url and (not usable or parts.query or parts.fragment or parts.username):
            raise WrongSetting(f"{var} is no address of the admin; write it as http://host:8000")
        return url

    def time_zone(self, var: str) -> str:
        """Return the name of a time zone."""
        name: str = self.str(var, "") or "UTC"
        if name not in zoneinfo.available_timezones():
            raise WrongSetting(f"{var}={name} is no time zone; name one as Asia/Shanghai")
        return name

    def log_level(self, var: str) -> str:
        """Return the name of a level of Python's logging."""
        name: str = self.str(var, "").upper() or "INFO"
        if name not in logging.getLevelNamesMapping():
            raise WrongSetting(f"{var}={name} is no level; write DEBUG, INFO, WARNING or ERROR")
        return name
