"""One leader by a row with a fencing epoch, the same on SQLite and PostgreSQL.

The epoch grows with every change of holder; whoever writes as the leader puts it into its WHERE or asks `renew` first.
"""

from datetime import datetime, timedelta

from django.db.models import F, Q

from portal.models import Lease


def take(name: str, holder: str, *, now: datetime, seconds: int) -> int | None:
    """Become, or stay, the holder. Returns the epoch; None while another one holds the lease."""
    Lease.objects.get_or_create(name=name)
    until = now + timedelta(seconds=seconds)
    if Lease.objects.filter(name=name, holder=holder, held_until__gte=now).update(held_until=until):
        return Lease.objects.values_list("epoch", flat=True).get(name=name)
    free = Q(held_until=None) | Q(held_until__lt=now)
    done = Lease.objects.filter(free, name=name).update(holder=holder, held_until=until, epoch=F("epoch") + 1)
    if not done:
        return None
    row = Lease.objects.get(name=name)
    return row.epoch if row.holder == holder else None


def release(name: str, holder: str) -> None:
    """Let go, so that the next one need not wait for the end."""
    Lease.objects.filter(name=name, holder=holder).update(held_until=None, holder="")
