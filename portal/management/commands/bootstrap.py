"""`manage.py bootstrap --admins GROUP`: what an empty installation needs before anybody can administer it.

Makes the three tiers and lets a group of the identity provider be platform admins; the rest is done in the portal.
Repeats harmlessly.
"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tenants.access import PlatformRole
from tenants.actions import SYSTEM, Rejected, map_group, save_tier
from tenants.models import GroupMapping, PriorityTier

# Slug, name, value, may preempt, is default.
TIERS = (
    ("critical-prod", "Critical production", 1_000_000, True, False),
    ("high-priority-research", "High-priority research", 500_000, True, False),
    ("low-priority-dev", "Development", 100_000, False, True),
)


class Command(BaseCommand):
    """See the module."""

    help = "Make the tiers and the first group of platform admins."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--admins", required=True, help="group, exactly as the identity provider sends it"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        make_tiers()
        group = options["admins"]
        if not GroupMapping.objects.filter(group=group, role=PlatformRole.ADMIN, team=None).exists():
            try:
                map_group(actor=SYSTEM, group=group, role=PlatformRole.ADMIN)
            except Rejected as error:
                raise CommandError(str(error)) from error
        self.stdout.write(f"Members of {group!r} are platform admins.")


def make_tiers() -> None:
    """The three tiers, where they are missing."""
    for slug, name, value, may_preempt, is_default in TIERS:
        if not PriorityTier.objects.filter(slug=slug).exists():
            tier = PriorityTier(
                slug=slug, name=name, value=value, may_preempt=may_preempt, is_default=is_default
            )
            save_tier(actor=SYSTEM, tier=tier)
