"""A real Kubernetes for the tests of this folder, and the portal's worker identity in it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from deploy import devcluster


@pytest.fixture(scope="session")
def running() -> Iterator[devcluster.DevCluster]:
    """A control plane with fake GPU nodes that ends with this test run."""
    directory = Path("/tmp", f"berth-cluster-{os.getpid()}")
    cluster = devcluster.up("test", directory=directory, lives_with=os.getpid())
    yield cluster
    devcluster.down("test", directory=directory, purge=True)


@pytest.fixture
def cluster(running: devcluster.DevCluster, settings: Settings) -> devcluster.DevCluster:
    """The same, with this process connected as the worker: least privilege, never cluster-admin."""
    settings.BERTH_KUBECONFIG = str(running.kubeconfig("worker"))
    return running
