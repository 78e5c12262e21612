"""Rows of the machinery: who leads, who is alive, what changed."""

from typing import ClassVar

from django.db import models


class Lease(models.Model):
    """Who may do something alone; written by `portal/lease.py` only."""

    name = models.CharField(max_length=60, primary_key=True)
    holder = models.CharField(max_length=120, blank=True)
    epoch = models.PositiveBigIntegerField(default=0)
    held_until = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.name}: {self.holder or 'nobody'} (epoch {self.epoch})"


class Heartbeat(models.Model):
    """When something was last well: "worker", "cluster", "collect". Written by `portal/health.py` only."""

    name = models.CharField(max_length=60, primary_key=True)
    at = models.DateTimeField(null=True, blank=True)  # last success
    error = models.TextField(blank=True)  # why the last try failed; empty when it did not
    failing_since = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.name}: {self.error or 'well'}"


class Change(models.Model):
    """One piece of news for open pages: that something changed, never what. Old rows are swept away."""

    topic = models.CharField(max_length=60)
    team_id = models.BigIntegerField(null=True, blank=True)  # who may hear it; empty for everybody
    at = models.DateTimeField(db_index=True)

    class Meta:
        ordering: ClassVar = ["id"]

    def __str__(self) -> str:
        return self.topic
