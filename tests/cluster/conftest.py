"""A real Kubernetes for the tests of this folder, and the portal's worker identity in it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from django.utils import timezone
from pytest_django import Settings

from deploy import devcluster
from tenants import reconcile as tenancy
from tenants.models import Pool, PriorityTier, Team
from tests.cluster.scene import observe_nodes


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


@pytest.fixture
def tenancy_ready(cluster: devcluster.DevCluster) -> devcluster.DevCluster:
    """The demo's teams, tiers and pools, made so in the cluster; nodes observed."""
    call_command("demo", verbosity=0)
    # Rows of each test are new, so earlier tests' namespaces are not theirs: each test makes its own teams.
    for team in Team.objects.all():
        Team.objects.filter(pk=team.pk).update(namespace=f"{team.namespace}-{timezone.now():%H%M%S%f}")
    for tier in PriorityTier.objects.all():
        tenancy.reconcile_tier(tier.pk)
    for pool in Pool.objects.all():
        tenancy.reconcile_pool(pool.pk)
    for team in Team.objects.all():
        tenancy.reconcile_team(team.pk)
    observe_nodes()
    return cluster
