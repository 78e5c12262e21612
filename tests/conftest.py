"""Fixtures for every folder. The database is a file (SQLite) or PostgreSQL (`python -m tests.postgresql`)."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connections

from deploy.demo.client import wait_for
from deploy.demo.stack import Stack


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings: None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Threads and processes have to share the test database: SQLite in memory has neither WAL nor locks."""
    settings = connections["default"].settings_dict
    if settings["ENGINE"].endswith("sqlite3"):
        settings["TEST"]["NAME"] = str(tmp_path_factory.mktemp("database") / "test.sqlite3")


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The whole product: provider, real Kubernetes with fake GPU nodes, web, worker, observe, collect; demo data.

    Finished objects stay only briefly in the cluster, so that tests see them go.
    """
    directory = Path("/tmp", f"berth-test-{os.getpid()}")  # short: the paths of sockets are limited
    running = Stack(directory, settings={"BERTH_KEEP_FINISHED_SECONDS": "20"})
    try:
        running.start()
        running.wait_cluster()
        wait_for("the portal", lambda: running.client().get("/healthz"))
        yield running
    finally:
        running.stop()


@pytest.fixture
def healthy_stack(stack: Stack) -> Iterator[Stack]:
    """The stack with every process running, whatever the test before did, and again after this one."""
    restore(stack)
    yield stack
    restore(stack)


def restore(stack: Stack) -> None:
    """Start whatever a test has killed."""
    stack.start_all()
    wait_for("the portal", lambda: stack.client().get("/healthz"))
