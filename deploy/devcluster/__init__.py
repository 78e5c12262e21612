"""A real Kubernetes for development, tests and the demo: control plane 1.34, fake GPU nodes, one optional real node.

For the command line see `python -m deploy.devcluster --help`. Pods on fake nodes live as their annotations
`simulate/…` say (kwok.yaml, podlogs.py). Pods on the real node have no way out of the machine, no cluster DNS and no
Service addresses; NetworkPolicies are not enforced.
"""

from deploy.devcluster.cluster import (
    DevCluster,
    Status,
    attach,
    down,
    kill_component,
    set_oidc,
    start_component,
    status,
    up,
)
from deploy.devcluster.realnode import obstacle as real_node_obstacle
from deploy.devcluster.state import DevClusterError, Oidc

__all__ = [
    "DevCluster",
    "DevClusterError",
    "Oidc",
    "Status",
    "attach",
    "down",
    "kill_component",
    "real_node_obstacle",
    "set_oidc",
    "start_component",
    "status",
    "up",
]
