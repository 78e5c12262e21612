"""Settings from the environment, typed; everything wrong is collected and told at once, by the setting's name.

Used by `portal/settings.py` only. A wrong value stops the start: nothing falls back silently.
"""

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

PREFIX = "BERTH_"
_TRUE, _FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off", ""}


class EnvironmentErrors(Exception):  # noqa: N818 (several at once)
    """Every setting that is wrong, one a line."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("Berth cannot start:\n" + "\n".join(f"  {each}" for each in problems))


class Env:
    """Reads BERTH_… variables. Problems are kept until `finish`, so that one start shows all of them."""

    def __init__(self, source: Mapping[str, str] | None = None) -> None:
        self._source = os.environ if source is None else source
        self._problems: list[str] = []
        self._known: set[str] = set()

    def text(self, name: str, default: str = "") -> str:
        """The value as it stands; surrounding blanks are dropped."""
        self._known.add(PREFIX + name)
        return self._source.get(PREFIX + name, default).strip()

    def flag(self, name: str, *, default: bool) -> bool:
        """1/true/yes/on or 0/false/no/off."""
        value = self.text(name, "1" if default else "0").lower()
        if value not in _TRUE | _FALSE:
            self.wrong(name, f"must be 1 or 0, not {value!r}")
        return value in _TRUE

    def number(self, name: str, default: int, *, low: int, high: int) -> int:
        """A whole number between `low` and `high`."""
        value = self.text(name, str(default))
        if not (value.isascii() and value.isdecimal()) or not low <= int(value) <= high:
            self.wrong(name, f"must be a whole number from {low} to {high}, not {value!r}")
            return default
        return int(value)

    def choice(self, name: str, default: str, choices: Collection[str]) -> str:
        """One of `choices`."""
        value = self.text(name, default)
        if value not in choices:
            shown = ", ".join(sorted(each for each in choices if each)[:8])
            self.wrong(name, f"must be one of {shown}, not {value!r}")
            return default
        return value

    def url(self, name: str, default: str = "", *, schemes: tuple[str, ...] = ("https", "http")) -> str:
        """An absolute URL without a slash at the end; empty when not given."""
        value = self.text(name, default).rstrip("/")
        if value:
            parts = urlsplit(value)
            if parts.scheme not in schemes or not parts.netloc:
                self.wrong(name, f"must be a URL that begins with {' or '.join(schemes)}://, not {value!r}")
        return value

    def file(self, name: str) -> str:
        """A path to a readable file; empty when not given."""
        value = self.text(name)
        if value and not os.access(value, os.R_OK):
            self.wrong(name, f"{value!r} cannot be read")
        return value

    def secret(self, name: str) -> str:
        """A secret given as it is, or as NAME_FILE the file that holds it."""
        value, path = self.text(name), self.file(f"{name}_FILE")
        if value and path:
            self.wrong(name, f"give {PREFIX}{name} or {PREFIX}{name}_FILE, not both")
        if path and os.access(path, os.R_OK):
            return Path(path).read_text().strip()
        return value

    def words(self, name: str) -> frozenset[str]:
        """Words separated by commas."""
        return frozenset(each.strip() for each in self.text(name).split(",") if each.strip())

    def database(self, name: str, default: str) -> dict[str, Any]:
        """sqlite:///path or postgresql://user:password@host:port/name as Django's settings."""
        value = self.text(name, default)
        parts = urlsplit(value)
        if parts.scheme == "sqlite" and parts.path:
            if not Path(unquote(parts.path)).parent.is_dir():
                self.wrong(name, f"the folder {str(Path(unquote(parts.path)).parent)!r} is not there")
            return {"ENGINE": "django.db.backends.sqlite3", "NAME": unquote(parts.path)}
        if parts.scheme in ("postgresql", "postgres") and parts.path.strip("/"):
            try:
                port = parts.port
            except ValueError:
                port = None
                self.wrong(name, "has a port that is no number")
            query = dict(pair.partition("=")[::2] for pair in parts.query.split("&") if pair)
            return {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": unquote(parts.path[1:]),
                "USER": unquote(parts.username or ""),
                "PASSWORD": unquote(parts.password or ""),
                # A directory with a socket is given as ?host=/directory.
                "HOST": unquote(query.get("host", "")) or parts.hostname or "",
                "PORT": str(port or ""),
            }
        shape = "sqlite:///path/to/file or postgresql://user:password@host:port/name"
        self.wrong(name, f"must be {shape}")  # never its value: it may hold a password
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}

    def wrong(self, name: str, text: str) -> None:
        """Note that a setting is wrong."""
        self._problems.append(f"{PREFIX}{name}: {text}")

    def finish(self) -> None:
        """Raise EnvironmentErrors when anything was wrong, or when a BERTH_ variable is none we know."""
        for name in sorted(self._source):
            if name.startswith(PREFIX) and name not in self._known:
                self._problems.append(f"{name}: there is no such setting")
        if self._problems:
            raise EnvironmentErrors(self._problems)
