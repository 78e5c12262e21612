"""System checks: what an operator should know at each start. Wrong settings stop it earlier (`portal/env.py`)."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Warning, register  # noqa: A004 (Django's own name)


@register
def sqlite_is_for_trials(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """SQLite has one writer at a time: fine for a trial on one host, not for many people (RW-003)."""
    if not settings.DATABASES["default"]["ENGINE"].endswith("sqlite3"):
        return []
    return [
        Warning(
            "The database is SQLite, which is for trials on one host with one worker.",
            hint="For production set BERTH_DATABASE_URL to postgresql://user:password@host:port/name.",
            id="berth.W001",
        )
    ]
