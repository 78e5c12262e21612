"""The whole product for the tests of this folder."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.demo.client import wait_for
from deploy.demo.stack import Stack, reset


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
    reset(directory)


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
