"""In steady state the portal writes nothing to the cluster; the API server's own audit log is the witness."""

import json
import time
from pathlib import Path

import pytest

from deploy.demo.client import wait_for
from deploy.demo.stack import Stack

pytestmark = pytest.mark.e2e

QUIET_SECONDS = 60
WRITES = {"create", "update", "patch", "delete", "deletecollection"}


def portal_writes(audit_log: Path, offset: int) -> list[str]:
    """What the portal's identities wrote since `offset` bytes into the log."""
    with audit_log.open() as log:
        log.seek(offset)
        events = [json.loads(line) for line in log if line.strip().endswith("}")]
    return [
        f"{event['user']['username']} {event['verb']} {event['requestURI']}"
        for event in events
        if event["user"]["username"].startswith("system:serviceaccount:berth-system:")
        and event["verb"] in WRITES
    ]


def test_nothing_is_written_while_nothing_changes(healthy_stack: Stack) -> None:
    audit_log = healthy_stack.wait_cluster().audit_log
    assert portal_writes(audit_log, 0), "the log shows no write at all: it is not the log of this cluster"
    settle(healthy_stack, audit_log)
    offset = audit_log.stat().st_size
    healthy_stack.manage("shell", "-c", RECONCILE_ALL)  # a full look at everything, on top of the usual
    time.sleep(QUIET_SECONDS)  # the measured span itself, not a hope
    assert portal_writes(audit_log, offset) == []


RECONCILE_ALL = """
from portal.queue import ring
from tenants.models import Pool, PriorityTier, Team
for kind, name in ((Team, "team"), (Pool, "pool"), (PriorityTier, "tier")):
    for pk in kind.objects.values_list("pk", flat=True):
        kind.touch(pk)
        ring(f"tenants.tasks.reconcile_{name}", pk)
"""


def settle(stack: Stack, audit_log: Path) -> None:
    """Wait until earlier tests' jobs have been cleaned up, and then for 10 s without a write."""
    cluster = stack.wait_cluster()
    wait_for(
        "the jobs of earlier tests to be cleaned up",
        lambda: not cluster.kubectl("get", "jobs", "--all-namespaces", "--output=name").stdout,
        seconds=240,
    )
    deadline = time.monotonic() + 240
    offset, since = audit_log.stat().st_size, time.monotonic()
    while time.monotonic() - since < 10:
        time.sleep(0.5)
        if portal_writes(audit_log, offset):
            offset, since = audit_log.stat().st_size, time.monotonic()
        assert time.monotonic() < deadline, "the portal does not come to rest"
    assert stack.is_running("worker")
