"""Reconcile of many teams from nothing, and the full check that finds nothing to do.

Berth goes its real way: rows and one bell each in the database, its worker process (BERTH_WORKERS as shipped) does the
rest. kubectl and the raw loop get the objects that Berth's own manifests give, in namespaces of other names, under the
worker's identity.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.db import transaction
from django.utils import timezone

from deploy.demo.stack import Stack
from deploy.devcluster import DevCluster
from portal.kube import names
from portal.kube.plan import Manifest, with_digest
from portal.queue import ring
from tenants.manifests import team_manifests
from tenants.models import GroupMapping, Pool, Quota, Team
from tenants.queries import team_state
from tenants.reconcile import READY, RECHECK
from tests.bench.cluster import (
    CONNECTIONS,
    Kubectl,
    RawLoop,
    Request,
    family_cpu_seconds,
    timed,
    wait_quiet,
    writes_since,
)
from tests.bench.rows import Row, median

PATIENCE_SECONDS = 300.0
REST_SECONDS = 10.0
Say = Callable[[str], None]
# Of the shapes of path the raw loop needs; it shares no code with what it is compared to.
PLURALS = {
    "ServiceAccount": "serviceaccounts",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "ResourceQuota": "resourcequotas",
    "LimitRange": "limitranges",
    "NetworkPolicy": "networkpolicies",
}


@dataclass(frozen=True)
class Round:
    """One repetition: its teams, not yet in the cluster, and the same objects for the other two ways."""

    teams: tuple[int, ...]
    kubectl_file: Path
    raw_waves: tuple[tuple[Request, ...], ...]
    objects: int


def rows(stack: Stack, *, teams: int, rounds: int, say: Say) -> list[Row]:
    """Reconcile beside kubectl and the raw loop, then the full check of the teams that are there."""
    cluster = stack.wait_cluster()
    taken: dict[str, list[float]] = {"berth": [], "kubectl": [], "raw": []}
    objects = 0
    kept: tuple[int, ...] = ()
    for number in range(rounds):
        # Rows of earlier rounds go, their objects stay: only this round's teams are Berth's business.
        Team.objects.filter(pk__in=kept).delete()
        this = _make_round(stack, cluster, number=number, teams=teams)
        objects, kept = this.objects, this.teams
        for way, seconds in _take_turns(stack, cluster, this, number=number).items():
            taken[way].append(seconds)
        say(
            f"reconcile, round {number + 1} of {rounds}: "
            + ", ".join(f"{way} {seconds[-1]:.2f} s" for way, seconds in taken.items())
        )
    return [*_reconcile_rows(taken, teams=teams, objects=objects), *_check_rows(stack, cluster, kept, say)]


def _reconcile_rows(taken: dict[str, list[float]], *, teams: int, objects: int) -> list[Row]:
    ours, kubectl, raw = (median(taken[way]) for way in ("berth", "kubectl", "raw"))
    name = f"reconcile {teams} teams ({objects} objects)"
    return [
        Row(
            name=name,
            ours=ours,
            unit="s",
            beside="kubectl apply --server-side",
            theirs=kubectl,
            aim="<= 0.6 x",
            is_met=ours <= 0.6 * kubectl,
            samples={"berth": taken["berth"], "kubectl": taken["kubectl"]},
            note="medians; bell to last team Ready, through the worker process with two workers",
        ),
        Row(
            name=name,
            ours=ours,
            unit="s",
            beside=f"raw loop, {CONNECTIONS} connections",
            theirs=raw,
            aim="<= 1.5 x",
            is_met=ours <= 1.5 * raw,
            samples={"berth": taken["berth"], "raw": taken["raw"]},
        ),
    ]


def _take_turns(stack: Stack, cluster: DevCluster, this: Round, *, number: int) -> dict[str, float]:
    """Seconds of each way, in another order each round."""
    worker = cluster.kubeconfig("worker")
    kubectl, loop = Kubectl(cluster, worker), RawLoop(worker)
    file = str(this.kubectl_file)
    ways: list[tuple[str, Callable[[], None]]] = [
        ("berth", lambda: _reconcile(this.teams)),
        ("kubectl", lambda: kubectl.run("apply", "--server-side", "-f", file)),
        ("raw", lambda: loop.apply(this.raw_waves)),
    ]
    taken = {}
    for way, work in ways[number % 3 :] + ways[: number % 3]:
        wait_quiet(cluster)
        taken[way] = timed(work)
    return taken


def _make_round(stack: Stack, cluster: DevCluster, *, number: int, teams: int) -> Round:
    """Rows of new teams: one group and a quota in every pool, as the demo's teams have. No bell rings yet."""
    prefix = f"r{number}-"
    with transaction.atomic():
        made = Team.objects.bulk_create(
            Team(
                slug=f"{prefix}{index:04}",
                name=f"Team {index}",
                namespace=names.namespace_name(f"{prefix}{index:04}", prefix="team-"),
                # Not due: the sweep leaves it alone until its bell rings.
                observed_generation=1,
            )
            for index in range(teams)
        )
        GroupMapping.objects.bulk_create(
            GroupMapping(group=f"group-{team.slug}", team=team, role="developer") for team in made
        )
        pools = [*Pool.objects.all()]
        Quota.objects.bulk_create(
            Quota(team=team, pool=pool, guarantee=0, borrow_cap=4) for team in made for pool in pools
        )
    manifests = [with_digest(each) for team in made for each in team_manifests(team_state(team))]
    file = stack.directory / f"round-{number}.json"
    copies = _renamed(manifests, f"team-{prefix}", f"cli-{prefix}")
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": copies}))
    return Round(
        teams=tuple(team.pk for team in made),
        kubectl_file=file,
        raw_waves=_waves(_renamed(manifests, f"team-{prefix}", f"raw-{prefix}")),
        objects=len(manifests),
    )


def _renamed(manifests: Sequence[Manifest], old: str, new: str) -> list[Manifest]:
    """Copies in other namespaces, what others refer to first."""
    found: list[Manifest] = json.loads(json.dumps(manifests).replace(f'"{old}', f'"{new}'))
    return sorted(found, key=_wave)


def _wave(manifest: Manifest) -> int:
    return {"Namespace": 0, "Role": 1}.get(manifest["kind"], 2)


def _waves(manifests: Sequence[Manifest]) -> tuple[tuple[Request, ...], ...]:
    return tuple(
        tuple((_path(each), json.dumps(each).encode()) for each in manifests if _wave(each) == wave)
        for wave in range(3)
    )


def _path(manifest: Manifest) -> str:
    version, meta = manifest["apiVersion"], manifest["metadata"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    inside = (
        f"namespaces/{meta['namespace']}/{PLURALS[manifest['kind']]}" if "namespace" in meta else "namespaces"
    )
    return f"{root}/{inside}/{meta['name']}?fieldManager=berth&force=true"


def _reconcile(teams: Sequence[int]) -> None:
    """Ring for every team and wait until all are Ready. Raises TimeoutError."""
    with transaction.atomic():
        Team.touch(*teams)
        for pk in teams:
            ring("tenants.tasks.reconcile_team", pk)
    _wait(lambda: Team.objects.filter(pk__in=teams, condition=READY).count() == len(teams), "Ready teams")


def _check_rows(stack: Stack, cluster: DevCluster, teams: Sequence[int], say: Say) -> list[Row]:
    """Everything is as it should be: look at all teams once, as the sweep does every RECHECK."""
    worker = stack.pid("worker")
    wait_quiet(cluster)
    before, started = family_cpu_seconds(worker), time.monotonic()
    time.sleep(REST_SECONDS)  # the measured span itself
    at_rest = (family_cpu_seconds(worker) - before) / (time.monotonic() - started)
    offset, before, started = cluster.audit_log.stat().st_size, family_cpu_seconds(worker), time.monotonic()
    _check(teams)
    seconds = time.monotonic() - started
    used = max(0.0, family_cpu_seconds(worker) - before - at_rest * seconds)
    writes = writes_since(cluster.audit_log, offset)
    period = RECHECK.total_seconds()
    share, aim = 100 * used / period, 10.0 * len(teams) / 1000
    say(
        f"full check of {len(teams)} teams: {seconds:.2f} s, {used:.2f} processor seconds, {len(writes)} writes"
    )
    note = (
        f"{used:.2f} processor seconds of the worker every {period:.0f} s; the aim is 10 % for 1,000 teams. "
        f"The worker at rest uses {100 * at_rest:.1f} % besides; the pass took {seconds:.2f} s"
    )
    return [
        Row(
            name=f"full check of {len(teams)} teams, writes",
            ours=len(writes),
            unit="",
            aim="0",
            is_met=not writes,
            note="; ".join(writes[:3]),
        ),
        Row(
            name=f"full check of {len(teams)} teams, core",
            ours=share,
            unit="%",
            aim=f"<= {aim:g} %",
            is_met=share <= aim,
            note=note,
        ),
    ]


def _check(teams: Sequence[int]) -> None:
    """Make every team due and ring the sweep, which is what time does in production. Raises TimeoutError."""
    now = timezone.now()
    rows = Team.objects.filter(pk__in=teams)
    with transaction.atomic():
        rows.update(reconcile_after=now)
        ring("tenants.tasks.sweep")
    _wait(lambda: not rows.filter(reconcile_after__lte=now).exists(), "the check")


def _wait(is_done: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {PATIENCE_SECONDS:.0f} s for {what}")
        time.sleep(0.04)  # a look costs the processors that the worker needs
