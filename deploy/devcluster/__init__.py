"""A real Kubernetes for development, tests and the demo: control plane 1.34, fake GPU nodes, one optional real node.

For the command line see `python -m deploy.devcluster --help`, for how it works and what it does not do README.md.
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
