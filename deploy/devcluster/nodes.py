"""The fake GPU nodes: which pools there are, and the Node objects; used by cluster.py and podlogs.py.

Nodes are created once and then left alone: labels and taints under `berth/` belong to the portal.
"""

from dataclasses import dataclass
from typing import Any

from deploy.devcluster.api import Api, ApiError

FAKE_ANNOTATION = "kwok.x-k8s.io/node"
GIB = 1024 * 1024  # in Ki


@dataclass(frozen=True)
class NodePool:
    """Nodes that are alike. `gpu_memory_gib` is of one GPU, `memory_gib` of one node."""

    name: str
    nodes: int
    gpus: int
    product: str
    gpu_memory_gib: int
    cpus: int
    memory_gib: int


POOLS = (
    NodePool("h100", 2, 8, "NVIDIA-H100-80GB-HBM3", 80, 192, 2048),
    NodePool("a100", 4, 8, "NVIDIA-A100-SXM4-80GB", 80, 128, 1024),
    NodePool("l4", 6, 4, "NVIDIA-L4", 24, 96, 384),
    NodePool("cpu", 2, 0, "", 0, 96, 384),
)


def pool_of(node_name: str) -> NodePool | None:
    """The pool that a fake node belongs to, by its name."""
    return next((pool for pool in POOLS if node_name.rpartition("-")[0] == pool.name), None)


def node_names() -> list[str]:
    """Names of all fake nodes, pool by pool: h100-0, h100-1, a100-0 ..."""
    return [f"{pool.name}-{number}" for pool in POOLS for number in range(pool.nodes)]


def node_manifest(name: str, pool: NodePool, *, kubelet_port: int) -> dict[str, Any]:
    """The Node object as a kubelet with `pool`'s hardware would register it."""
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": f"simulated-{pool.name}",
        "gpu.model": pool.name,
    }
    capacity = {"cpu": str(pool.cpus), "memory": f"{pool.memory_gib * GIB}Ki", "pods": "110"}
    capacity["ephemeral-storage"] = "2Ti"
    if pool.gpus:
        labels |= {
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.product": pool.product,
            "nvidia.com/gpu.count": str(pool.gpus),
            "nvidia.com/gpu.memory": str(pool.gpu_memory_gib * 1024),
        }
        capacity["nvidia.com/gpu"] = str(pool.gpus)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {FAKE_ANNOTATION: "fake"}},
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "nodeInfo": _node_info(pool),
            **endpoint(name, kubelet_port),
        },
    }


def endpoint(name: str, kubelet_port: int) -> dict[str, Any]:
    """The part of a node's status that tells the API server where to ask for logs."""
    return {
        "addresses": [
            {"type": "InternalIP", "address": "127.0.0.1"},
            {"type": "Hostname", "address": name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet_port}},
    }


def ensure(api: Api, *, kubelet_port: int) -> None:
    """Create the fake nodes that are missing; of the others correct only the address. Raises ApiError."""
    there = {node["metadata"]["name"]: node for node in api.get("/api/v1/nodes")["items"]}
    for name in node_names():
        pool = pool_of(name)
        assert pool is not None
        if name not in there:
            try:
                api.request("POST", "/api/v1/nodes", node_manifest(name, pool, kubelet_port=kubelet_port))
            except ApiError as error:
                if error.status != 409:
                    raise
        elif there[name]["status"].get("daemonEndpoints") != endpoint(name, kubelet_port)["daemonEndpoints"]:
            api.request(
                "PATCH",
                f"/api/v1/nodes/{name}/status",
                {"status": endpoint(name, kubelet_port)},
                content_type="application/strategic-merge-patch+json",
            )


def ready_nodes(api: Api) -> set[str]:
    """Names of the nodes that are Ready and not held back by the not-ready or unreachable taints. Raises ApiError."""
    return {
        node["metadata"]["name"]
        for node in api.get("/api/v1/nodes")["items"]
        if any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", []))
        and not any(t["key"].startswith("node.kubernetes.io/") for t in node["spec"].get("taints", []))
    }


def _node_info(pool: NodePool) -> dict[str, str]:
    return {
        "architecture": "amd64",
        "operatingSystem": "linux",
        "osImage": f"Simulated {pool.name} node",
        "kernelVersion": "simulated",
        "kubeletVersion": "v1.34.4",
        "kubeProxyVersion": "",
        "containerRuntimeVersion": "kwok://0.7.0",
        "bootID": "",
        "machineID": "",
        "systemUUID": "",
    }
