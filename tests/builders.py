"""Rows for tests, valid by default; through the actions, so that they are what the product makes."""

from dataclasses import replace
from datetime import datetime
from itertools import count
from typing import Any

from django.utils import timezone

from jobs.actions import Submission, observe_nodes, observe_pods, submit_job
from jobs.models import Job, Node, Pod, PoolQueue
from jobs.state import CommandMode
from tenants.actions import SYSTEM, create_team, map_group, save_pool, save_quota, save_tier
from tenants.models import GroupMapping, PriorityTier, Quota, Team, User
from tenants.models import Pool as NodePool
from tenants.queries import viewer_for

GIB = 1024**3
_numbers = count(1)


def team(slug: str = "vision", **columns: Any) -> Team:
    """A team without quota and groups."""
    return create_team(actor=SYSTEM, slug=slug, name=columns.pop("name", slug.title()), **columns)


def pool(slug: str = "h100", **columns: Any) -> NodePool:
    """A pool of nodes labelled `gpu.model=<slug>`, with its queue."""
    columns = {"name": slug.upper(), "gpu_model": f"NVIDIA {slug.upper()}"} | columns
    row = NodePool(slug=slug, node_selector={"gpu.model": slug}, **columns)
    saved = save_pool(actor=SYSTEM, pool=row)
    PoolQueue.objects.get_or_create(pool=saved)
    return saved


def tier(slug: str = "low-priority-dev", **columns: Any) -> PriorityTier:
    """A tier; the first one made is the default."""
    is_first = not PriorityTier.objects.filter(is_default=True).exists()
    columns = {"name": slug.title(), "value": 100_000, "is_default": is_first} | columns
    return save_tier(actor=SYSTEM, tier=PriorityTier(slug=slug, **columns))


def quota(of: Team, within: NodePool, **columns: Any) -> Quota:
    """A guarantee of 8 and as much to borrow."""
    columns = {"guarantee": 8, "borrow_cap": 8} | columns
    return save_quota(actor=SYSTEM, quota=Quota(team=of, pool=within, **columns))


def person(username: str, role: str = "", of: Team | None = None) -> User:
    """Somebody who signed in with one group, which means `role` in a team or, without one, for the platform."""
    group = f"{of.slug if of else 'platform'}-{role}"
    user = User.objects.create(
        username=username,
        issuer="https://id.example",
        subject=username,
        claim_state="ok",
        groups_claim=[group] if role else [],
        claims_verified_at=timezone.now(),
    )
    if role and not GroupMapping.objects.filter(group=group, role=role, team=of).exists():
        map_group(actor=SYSTEM, group=group, role=role, team=of)
    return user


def job(owner: User, of: Team, within: NodePool, at: PriorityTier, **changes: Any) -> Job:
    """A submitted job of one worker with one GPU."""
    submission = Submission(
        team=of,
        pool=within,
        tier=at,
        name=f"train-{next(_numbers)}",
        image="registry.example/train:1",
        command_mode=CommandMode.ARGV,
        argv=("python", "train.py"),
        gpus=1,
    )
    return submit_job(actor=viewer_for(owner), submission=replace(submission, **changes))[0]


def node(name: str, of: NodePool, gpus: int = 8, healthy: int | None = None, **columns: Any) -> Node:
    """A ready node of a pool."""
    works = gpus if healthy is None else healthy
    row = {
        "name": name,
        "uid": f"uid-{name}",
        "labels": dict(of.node_selector),
        "taints": [],
        "is_ready": True,
        "is_cordoned": False,
        "cpu_milli": 96_000,
        "memory_bytes": 1024 * GIB,
        "pods": 110,
        "gpus": {of.gpu_resource: {"capacity": gpus, "allocatable": works}} if of.gpu_resource else {},
        "resource_version": "1",
    }
    observe_nodes([row | columns], gone=(), now=timezone.now())
    return Node.objects.get(name=name)


def worker(of: Job, on: str, rank: int = 0, **columns: Any) -> Pod:
    """A running pod of a job on a node."""
    now = timezone.now()
    name = f"job-{of.pk}-{of.attempt}-{rank}"
    row = {
        "uid": f"uid-{name}",
        "job_label": str(of.pk),
        "attempt": of.attempt,
        "rank": rank,
        "namespace": of.team.namespace,
        "name": name,
        "node_name": on,
        "phase": "Running",
        "is_ready": True,
        "containers": [_container(now)],
        "cpu_milli": of.cpu_milli,
        "memory_bytes": of.memory_bytes,
        "gpus": {of.pool.gpu_resource: of.gpus} if of.gpus else {},
        "resource_version": "1",
        "created_at": now,
        "started_at": now,
    }
    observe_pods([row | columns], gone=(), now=now)
    return Pod.objects.get(uid=(row | columns)["uid"])


def _container(now: datetime) -> dict[str, object]:
    return {
        "name": "main",
        "kind": "main",
        "state": "running",
        "restarts": 0,
        "exit_code": None,
        "reason": "",
        "message": "",
        "started_at": now.isoformat(),
        "finished_at": None,
    }
