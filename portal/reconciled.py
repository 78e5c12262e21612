"""The base of every row that must be so in the cluster: who works on it, whether that was done, when to look again.

One conditional UPDATE takes the claim, so two workers never work on one row; results are written under the claim's
token only. A crash anywhere leaves a claim that expires, and the next run repeats harmlessly.
"""

import uuid
from datetime import datetime, timedelta
from typing import Self

from django.db import models
from django.db.models import F, Q

FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 1, 300
# Long enough for any run; short enough that work of a killed worker is taken over soon. A run that outlives it loses
# nothing: its results are dropped, and what it wrote to the cluster the next run finds there.
CLAIM_SECONDS = 30


class Reconciled(models.Model):
    """`generation` counts wishes, `observed_generation` is the last one that was made so."""

    generation = models.PositiveBigIntegerField(default=1)
    observed_generation = models.PositiveBigIntegerField(default=0)
    reconcile_after = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0)
    last_error = models.TextField(blank=True)
    claim_token = models.UUIDField(null=True, blank=True)
    claimed_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True

    @classmethod
    def claim(cls, pk: int, *, now: datetime, seconds: int = CLAIM_SECONDS) -> uuid.UUID | None:
        """Take the row to work on; None while another worker holds it, or when there is no such row."""
        token = uuid.uuid4()
        free = Q(claimed_until=None) | Q(claimed_until__lt=now)
        done = (
            cls._rows()
            .filter(free, pk=pk)
            .update(claim_token=token, claimed_until=now + timedelta(seconds=seconds))
        )
        return token if done else None

    @classmethod
    def settle(
        cls, pk: int, token: uuid.UUID, *, observed_generation: int, after: datetime | None = None
    ) -> bool:
        """Let go after success; `after` is when to look again anyway.

        False when the row was touched, or the claim lost, meanwhile: then ring again.
        """
        claimed = cls._rows().filter(pk=pk, claim_token=token)
        settled: dict[str, object] = {
            "observed_generation": observed_generation,
            "reconcile_after": after,
            "failures": 0,
            "last_error": "",
            "claim_token": None,
            "claimed_until": None,
        }
        if claimed.filter(generation=observed_generation).update(**settled):
            return True
        claimed.update(**settled)
        return False

    @classmethod
    def fail(cls, pk: int, token: uuid.UUID, *, error: str, now: datetime) -> bool:
        """Let go after an error: stored on the row, tried again later, each time twice as late."""
        failures = cls._rows().filter(pk=pk).values_list("failures", flat=True).first() or 0
        pause = min(FIRST_RETRY_SECONDS * 2 ** min(failures, 16), LONGEST_RETRY_SECONDS)
        return bool(
            cls._rows()
            .filter(pk=pk, claim_token=token)
            .update(
                failures=F("failures") + 1,
                last_error=error[:4000],
                reconcile_after=now + timedelta(seconds=pause),
                claim_token=None,
                claimed_until=None,
            )
        )

    @classmethod
    def touch(cls, *pks: int) -> None:
        """Note that these rows have to be looked at; ring as well, so that it happens now."""
        if pks:
            cls._rows().filter(pk__in=pks).update(generation=F("generation") + 1)

    @classmethod
    def due(cls, now: datetime, limit: int) -> list[int]:
        """Rows nobody works on that have something to do now: a wish not made so, or a time that has come."""
        free = Q(claimed_until=None) | Q(claimed_until__lt=now)
        wish = Q(observed_generation__lt=F("generation")) & (
            Q(reconcile_after=None) | Q(reconcile_after__lte=now)
        )
        found = cls._rows().filter(free, wish | Q(reconcile_after__lte=now))
        return [*found.order_by("pk").values_list("pk", flat=True)[:limit]]

    @classmethod
    def _rows(cls) -> "models.Manager[Self]":
        return cls._default_manager

    def is_due(self, now: datetime) -> bool:
        """Whether this row, as loaded, has something to do now."""
        if self.reconcile_after is not None and self.reconcile_after <= now:
            return True
        return self.observed_generation < self.generation and self.reconcile_after is None
