"""Fixtures for every folder. The database is a file (SQLite) or PostgreSQL (`python -m tests.postgresql`)."""

import pytest
from django.db import connections


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings: None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Threads and processes have to share the test database: SQLite in memory has neither WAL nor locks."""
    settings = connections["default"].settings_dict
    if settings["ENGINE"].endswith("sqlite3"):
        settings["TEST"]["NAME"] = str(tmp_path_factory.mktemp("database") / "test.sqlite3")
