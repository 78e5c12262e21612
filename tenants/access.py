"""Claims to roles to verbs: the one place that answers "who can do it?" (pure).

Called by queries (which scope every row to a viewer), by actions (which refuse) and by pages (which hide
what would be refused). Roles come from the groups of the last verified claims, never from stored rights,
so that leaving a group at the provider ends access here with the next request.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType


class TeamRole(StrEnum):
    """What somebody is inside one team; each includes the ones before it."""

    VIEWER = "viewer"
    DEVELOPER = "developer"
    LEAD = "lead"


class PlatformRole(StrEnum):
    """What somebody is for the whole platform. None of them opens a tenant's data."""

    ADMIN = "admin"
    OPERATOR = "operator"
    AUDITOR = "auditor"


class Verb(StrEnum):
    """Everything that is ever asked about; a verb is either about one team or about the platform."""

    SEE_TEAM = "see team"
    SEE_JOBS = "see jobs"
    READ_TENANT_DATA = "read tenant data"  # logs, command, environment, artifacts
    SUBMIT_JOB = "submit job"
    CANCEL_JOB = "cancel job"
    ORDER_QUEUE = "order queue"
    SEE_CLUSTER = "see cluster"
    ADMINISTER = "administer"  # pools, quotas, tiers, teams, groups
    SEE_ADMINISTRATION = "see administration"
    SEE_AUDIT = "see audit"


@dataclass(frozen=True)
class Mapped:
    """One group mapping as `roles_from_groups` needs it; `team_id` is None for a platform role."""

    group: str
    role: str
    team_id: int | None


@dataclass(frozen=True)
class Viewer:
    """Who asks. Built for each request from the user's last verified claims."""

    user_id: int
    username: str
    display_name: str = ""
    platform: frozenset[PlatformRole] = frozenset()
    teams: Mapping[int, TeamRole] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def team_ids(self) -> tuple[int, ...]:
        """Teams this viewer belongs to in any role, in a stable order."""
        return tuple(sorted(self.teams))

    @property
    def sees_every_team(self) -> bool:
        """Whether names, sizes, states and causes of all teams may be shown."""
        return bool(self.platform)


_TEAM_VERBS: Mapping[TeamRole, frozenset[Verb]] = {
    TeamRole.VIEWER: frozenset({Verb.SEE_TEAM, Verb.SEE_JOBS, Verb.READ_TENANT_DATA}),
    TeamRole.DEVELOPER: frozenset(
        {Verb.SEE_TEAM, Verb.SEE_JOBS, Verb.READ_TENANT_DATA, Verb.SUBMIT_JOB, Verb.CANCEL_JOB}
    ),
    TeamRole.LEAD: frozenset(
        {
            Verb.SEE_TEAM,
            Verb.SEE_JOBS,
            Verb.READ_TENANT_DATA,
            Verb.SUBMIT_JOB,
            Verb.CANCEL_JOB,
            Verb.ORDER_QUEUE,
        }
    ),
}

# The operator requeues and drains but never reads a tenant's logs, environment or secrets; the
# auditor reads everything administrative and changes nothing; the admin sets rules and needs no tenant data.
_PLATFORM_VERBS: Mapping[PlatformRole, frozenset[Verb]] = {
    PlatformRole.ADMIN: frozenset(
        {
            Verb.SEE_TEAM,
            Verb.SEE_JOBS,
            Verb.CANCEL_JOB,
            Verb.ORDER_QUEUE,
            Verb.SEE_CLUSTER,
            Verb.ADMINISTER,
            Verb.SEE_ADMINISTRATION,
            Verb.SEE_AUDIT,
        }
    ),
    PlatformRole.OPERATOR: frozenset(
        {Verb.SEE_TEAM, Verb.SEE_JOBS, Verb.CANCEL_JOB, Verb.SEE_CLUSTER, Verb.SEE_ADMINISTRATION}
    ),
    PlatformRole.AUDITOR: frozenset(
        {Verb.SEE_TEAM, Verb.SEE_JOBS, Verb.SEE_CLUSTER, Verb.SEE_ADMINISTRATION, Verb.SEE_AUDIT}
    ),
}

_ROLE_RANK = {role: rank for rank, role in enumerate(TeamRole)}


def can(viewer: Viewer, verb: Verb, team_id: int | None = None) -> bool:
    """Whether `viewer` may do `verb`, in the team `team_id` where the verb is about a team.

    SEE_CLUSTER is open to every member of any team: the map shows other teams only as "others".
    """
    if any(verb in _PLATFORM_VERBS[role] for role in viewer.platform):
        return True
    if verb is Verb.SEE_CLUSTER:
        return bool(viewer.teams)
    if team_id is None:
        return False
    role = viewer.teams.get(team_id)
    return role is not None and verb in _TEAM_VERBS[role]


def roles_from_groups(
    groups: Iterable[str], mappings: Iterable[Mapped]
) -> tuple[frozenset[PlatformRole], Mapping[int, TeamRole]]:
    """Platform roles and the highest role per team that `groups` give, by exact comparison.

    Group names are compared as they came: folding case would let a stranger's group match (RW-051).
    """
    held = set(groups)
    platform: set[PlatformRole] = set()
    teams: dict[int, TeamRole] = {}
    for mapping in mappings:
        if mapping.group not in held:
            continue
        if mapping.team_id is None:
            platform.add(PlatformRole(mapping.role))
            continue
        role = TeamRole(mapping.role)
        known = teams.get(mapping.team_id)
        if known is None or _ROLE_RANK[role] > _ROLE_RANK[known]:
            teams[mapping.team_id] = role
    return frozenset(platform), MappingProxyType(teams)
