"""`manage.py demo`: fills an empty database with the demo's teams, pools, tiers and groups. Repeats harmlessly."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from jobs.models import PoolQueue
from portal.management.commands.bootstrap import make_tiers
from tenants.actions import SYSTEM, create_team, grant_tier, map_group, save_pool, save_quota
from tenants.models import GroupMapping, Pool, PriorityTier, Quota, Team

POOLS = (
    ("h100", "H100", "NVIDIA H100 80 GB", "nvidia.com/gpu"),
    ("a100", "A100", "NVIDIA A100 80 GB", "nvidia.com/gpu"),
    ("l4", "L4", "NVIDIA L4 24 GB", "nvidia.com/gpu"),
    ("cpu", "CPU", "", ""),
)
# Only where the development cluster has its real node: its GPUs are claimed and counted, there is no device.
REAL_POOL = ("real", "Real node", "no device", "nvidia.com/gpu")
TEAMS = (("a", "Vision"), ("b", "Language"), ("c", "Robotics"))
# Per pool: guarantee, borrow cap, lend cap. In the pool without GPUs they count workers.
QUOTAS = {"h100": (4, 8, 4), "a100": (10, 12, 10), "l4": (8, 16, 8), "cpu": (20, 40, 20), "real": (0, 2, 0)}
GROUPS = (
    ("ml-team-a", "a", "developer"),
    ("ml-team-a-leads", "a", "lead"),
    ("ml-team-a-viewers", "a", "viewer"),
    ("ml-team-b", "b", "developer"),
    ("ml-team-c", "c", "developer"),
    ("ml-platform-admins", None, "admin"),
    ("ml-operators", None, "operator"),
    ("ml-auditors", None, "auditor"),
)


class Command(BaseCommand):
    """See the module."""

    help = "Seed the demo's teams, pools, tiers, quotas and groups."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--real-node", action="store_true", help="add the pool of the development cluster's real node"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        make_tiers()
        pools = (*POOLS, REAL_POOL) if options["real_node"] else POOLS
        for slug, name, gpu_model, gpu_resource in pools:
            if not Pool.objects.filter(slug=slug).exists():
                pool = Pool(slug=slug, name=name, gpu_model=gpu_model, gpu_resource=gpu_resource)
                pool.node_selector = {"gpu.model": slug}
                save_pool(actor=SYSTEM, pool=pool)
                PoolQueue.objects.get_or_create(pool=pool)
        for slug, name in TEAMS:
            if not Team.objects.filter(slug=slug).exists():
                create_team(actor=SYSTEM, slug=slug, name=name)
        teams = {team.slug: team for team in Team.objects.all()}
        for group, slug_or_none, role in GROUPS:
            mapped_team = teams[slug_or_none] if slug_or_none else None
            if not GroupMapping.objects.filter(group=group, team=mapped_team).exists():
                map_group(actor=SYSTEM, group=group, role=role, team=mapped_team)
        self._quotas(teams)
        self.stdout.write(f"{len(teams)} teams, {len(pools)} pools")

    def _quotas(self, teams: dict[str, Team]) -> None:
        for pool in Pool.objects.filter(slug__in=QUOTAS):
            guarantee, borrow, lend = QUOTAS[pool.slug]
            for slug, _name in TEAMS:
                if not Quota.objects.filter(team=teams[slug], pool=pool).exists():
                    quota = Quota(
                        team=teams[slug], pool=pool, guarantee=guarantee, borrow_cap=borrow, lend_cap=lend
                    )
                    save_quota(actor=SYSTEM, quota=quota)
        research = PriorityTier.objects.get(slug="high-priority-research")
        for team in teams.values():
            if not team.tier_grants.filter(tier=research).exists():
                grant_tier(actor=SYSTEM, team=team, tier=research, max_gpus=8)
