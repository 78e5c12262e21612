"""Who was last well, and whether the cluster answers. Pages, admission and /readyz read it here."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F
from django.db.models.functions import Coalesce
from django.utils import timezone

from portal.models import Heartbeat

CLUSTER = "cluster"
WORKER = "worker"
STALE = timedelta(seconds=90)
# A single failed try is no news; after this long pages say so and admission stops.
PATIENCE = timedelta(seconds=5)


@dataclass(frozen=True)
class Freshness:
    """How current the observed cluster is. `as_of` is None when it was never reached."""

    as_of: datetime | None
    error: str
    since: datetime | None
    is_stale: bool


def beat(name: str, *, now: datetime) -> bool:
    """Note that `name` is well. True when it was not before (or never was)."""
    row, created = Heartbeat.objects.get_or_create(name=name, defaults={"at": now})
    was_ill = created or bool(row.error)
    Heartbeat.objects.filter(name=name).update(at=now, error="", failing_since=None)
    return was_ill


def fail(name: str, error: str, *, now: datetime) -> None:
    """Note that `name` failed and why; the time of the first failure in a row is kept."""
    Heartbeat.objects.get_or_create(name=name)
    Heartbeat.objects.filter(name=name).update(
        error=error[:1000], failing_since=Coalesce(F("failing_since"), now)
    )


def last_beat(name: str) -> datetime | None:
    """When `name` was last well."""
    return Heartbeat.objects.filter(name=name).values_list("at", flat=True).first()


def cluster_freshness() -> Freshness:
    """What pages say about the cluster."""
    row = Heartbeat.objects.filter(name=CLUSTER).first()
    now = timezone.now()
    if row is None:
        return Freshness(None, "", None, is_stale=True)
    is_stale = row.at is None or now - row.at > STALE
    is_failing = row.failing_since is not None and now - row.failing_since > PATIENCE
    return Freshness(
        row.at, row.error if is_failing else "", row.failing_since if is_failing else None, is_stale
    )


def cluster_unreachable_since() -> datetime | None:
    """Since when the cluster has not answered; None while it does."""
    found = cluster_freshness()
    if found.error:
        return found.since
    if found.as_of is None:
        return timezone.now()
    return found.as_of if found.is_stale else None
