"""The real node's network: a bridge of its own with a free /24 per instance; used by realnode.py and leftovers.py.

The bridge's address is the node's, since a kubelet refuses a loopback address. Pods get addresses beside it and no
way out: nothing on this machine is forwarded, masqueraded or filtered for them.
"""

import ipaddress
import json
import subprocess
from pathlib import Path
from typing import Any

from deploy.devcluster.state import RUN, DevClusterError, locked

# 10.0.0.0/24 is for services, from 10.192.0.0 on are the fake nodes' pods (controlplane.py).
SUBNETS = range(1, 192)


def name(subnet: int) -> str:
    """The bridge's name: at most 15 characters (Linux IFNAMSIZ)."""
    return f"berth{subnet}"


def network(subnet: int) -> str:
    """The addresses of the node and its pods."""
    return f"10.{subnet}.0.0/24"


def address(subnet: int) -> str:
    """The node's own address."""
    return f"10.{subnet}.0.1"


def ensure(subnet: int | None, owner: str) -> int:
    """Make the bridge of `owner` if it is not there, on `subnet` when that is free; says on which it is.

    Raises DevClusterError when all subnets are taken or the kernel refuses.
    """
    with locked(RUN / "lock"):  # Two instances must not choose the same.
        there = next((each for each in SUBNETS if _owner(each) == owner), None)
        chosen = there if there is not None else _free_subnet(subnet)
        if there is None:
            _ip("link", "add", "name", name(chosen), "type", "bridge")
            _ip("link", "set", name(chosen), "alias", owner)
        _ip("address", "replace", f"{address(chosen)}/24", "dev", name(chosen))
        _ip("link", "set", name(chosen), "up")
        return chosen


def remove(owner: str) -> None:
    """Remove the bridge of `owner` and what is plugged into it."""
    with locked(RUN / "lock"):
        for subnet in SUBNETS:
            if _owner(subnet) == owner:
                for link in _ip("link", "show", "master", name(subnet)):
                    _ip(
                        "link", "delete", link["ifname"], check=False
                    )  # It goes with its pod's namespace, too.
                _ip("link", "delete", name(subnet))


def _free_subnet(preferred: int | None) -> int:
    taken = _networks()
    for candidate in [preferred, *SUBNETS] if preferred is not None else SUBNETS:
        mine = ipaddress.ip_network(network(candidate))
        if _owner(candidate) is None and not any(mine.overlaps(other) for other in taken):
            return candidate
    raise DevClusterError("the real node's network: 10.1.0.0/24 and all after it are in use")


def _owner(subnet: int) -> str | None:
    """Whose bridge it is; None when there is none of this name."""
    try:
        return Path(f"/sys/class/net/{name(subnet)}/ifalias").read_text().strip()
    except OSError:
        return None


def _networks() -> list[ipaddress.IPv4Network]:
    """Networks of this machine's addresses and routes.

    A wide route, such as a private network's 10.0.0.0/8, is no obstacle: the bridge's is the narrower one.
    """
    found = [
        f"{each['local']}/{each['prefixlen']}"
        for link in _ip("-4", "address", "show")
        for each in link["addr_info"]
    ]
    found += [route["dst"] for route in _ip("-4", "route", "show") if route["dst"] != "default"]
    networks = [ipaddress.IPv4Network(each, strict=False) for each in found]
    return [each for each in networks if each.prefixlen >= 16]


def _ip(*arguments: str, check: bool = True) -> list[dict[str, Any]]:
    result = subprocess.run(
        ["ip", "-json", *arguments], capture_output=True, text=True, timeout=30, check=False
    )
    if check and result.returncode:
        raise DevClusterError(f"ip {' '.join(arguments)}: {result.stderr.strip()}")
    # An absent answer is an empty list; unset entries come as empty objects.
    return [each for each in json.loads(result.stdout or "[]") if each]
