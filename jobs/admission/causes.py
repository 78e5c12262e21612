"""The one table of waiting causes. Page text, API code and documentation come from here and nowhere else.

`Cause.sentence()` is what people read; `detail` carries the numbers for programs. A cause never names another
team's people or jobs: `holders` lists team names and sizes, which the page shortens to what the viewer may see.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class CauseCode(StrEnum):
    """Reason codes; the order is the order of dominance: the first that holds is the one shown."""

    CONSIDERING = "Considering"
    TEAM_SUSPENDED = "TeamSuspended"
    POOL_ON_HOLD = "PoolOnHold"
    TIER_NOT_GRANTED = "TierNotGranted"
    NO_QUOTA_IN_POOL = "NoQuotaInPool"
    WALL_TIME_TOO_LONG = "WallTimeTooLong"
    EXCEEDS_HARD_MAXIMUM = "ExceedsHardMaximum"
    EXCEEDS_NODE = "ExceedsNode"
    NO_USABLE_NODES = "NoUsableNodes"
    TIER_CAP_IN_USE = "TierCapInUse"
    PER_USER_CAP = "PerUserCap"
    TEAM_QUOTA_IN_USE = "TeamQuotaInUse"
    GUARANTEED_TO_OTHERS = "GuaranteedToOthers"
    POOL_FULL = "PoolFull"
    FRAGMENTED = "Fragmented"
    CLUSTER_REFUSED = "ClusterRefused"
    CLUSTER_UNREACHABLE = "ClusterUnreachable"


@dataclass(frozen=True)
class CauseText:
    """How one cause is told. `sentence` is a format string over the cause's detail."""

    title: str
    sentence: str
    remedies: tuple[str, ...] = ()
    is_final: bool = False  # will never run as it stands


CAUSES: Mapping[CauseCode, CauseText] = {
    CauseCode.CONSIDERING: CauseText(
        "Just submitted", "The next admission pass decides; this takes a second or two."
    ),
    CauseCode.TEAM_SUSPENDED: CauseText(
        "Team suspended",
        "{team} is suspended: nothing of it starts until an administrator lifts the suspension.",
        ("Ask an administrator why the team is suspended.",),
    ),
    CauseCode.POOL_ON_HOLD: CauseText(
        "Pool on hold",
        "{pool} is on hold: running jobs go on, nothing new starts.",
        ("Choose another pool.",),
    ),
    CauseCode.TIER_NOT_GRANTED: CauseText(
        "Not entitled to the tier",
        "{team} may not use the tier “{tier}”.",
        ("Choose a lower tier.", "Ask an administrator for a grant."),
        is_final=True,
    ),
    CauseCode.NO_QUOTA_IN_POOL: CauseText(
        "No quota in this pool",
        "{team} has neither a guarantee nor borrowing in {pool}.",
        ("Choose another pool.", "Ask an administrator for quota."),
        is_final=True,
    ),
    CauseCode.WALL_TIME_TOO_LONG: CauseText(
        "Wall time too long",
        "Asks for {asked} seconds; at most {limit} are allowed in {pool}.",
        ("Ask for a shorter wall time.",),
        is_final=True,
    ),
    CauseCode.EXCEEDS_HARD_MAXIMUM: CauseText(
        "Exceeds the team's maximum",
        "Needs {needed} {unit} at once; {team} may never hold more than {limit} in {pool}.",
        ("Use fewer workers or GPUs.", "Choose another pool.", "Ask an administrator for a higher maximum."),
        is_final=True,
    ),
    CauseCode.EXCEEDS_NODE: CauseText(
        "Exceeds what the nodes offer",
        "Needs {needed}; {pool} offers {offered} even when empty.",
        ("Ask for less per worker.", "Choose another pool."),
        is_final=True,
    ),
    CauseCode.NO_USABLE_NODES: CauseText(
        "No usable node",
        "{pool} has no node that is ready and not cordoned right now ({known} known).",
        ("Choose another pool.",),
    ),
    CauseCode.TIER_CAP_IN_USE: CauseText(
        "Tier cap in use",
        "{team} holds {used} of the {limit} {unit} it may hold at tier “{tier}”; this job needs {needed}.",
        ("Choose a lower tier.", "Wait for the team's own jobs of this tier."),
    ),
    CauseCode.PER_USER_CAP: CauseText(
        "Per-user cap",
        "You hold {used} of the {limit} {unit} one person may hold in {pool}; this job needs {needed}.",
        ("Wait for your own jobs to finish.",),
    ),
    CauseCode.TEAM_QUOTA_IN_USE: CauseText(
        "Team quota in use",
        "{team} holds {used} of the {limit} {unit} it may hold in {pool}; this job needs {needed}.",
        ("Wait for the team's own jobs.", "Use fewer workers or GPUs.", "Choose another pool."),
    ),
    CauseCode.GUARANTEED_TO_OTHERS: CauseText(
        "Free, but guaranteed to others",
        "{free} {unit} are free in {pool}, but {reserved} of them are kept for other teams' guarantees; "
        "above its own guarantee {team} could take {available}, this job needs {needed}.",
        ("Wait for the team's own jobs.", "Choose another pool."),
    ),
    CauseCode.POOL_FULL: CauseText(
        "Pool full",
        "{free} of {total} {unit} are free in {pool}; this job needs {needed}. Held by {holders}.",
        ("Choose another pool.", "Use fewer workers or GPUs."),
    ),
    CauseCode.FRAGMENTED: CauseText(
        "Fragmented",
        "{free} {unit} are free in {pool}, but no node has room for a worker that needs {worker}; "
        "{placed} of {workers} workers would fit.",
        ("Ask for less per worker.", "Choose another pool."),
    ),
    CauseCode.CLUSTER_REFUSED: CauseText(
        "The cluster refused",
        "The cluster refused the job: {message}",
        ("Change what it names and resubmit.",),
    ),
    CauseCode.CLUSTER_UNREACHABLE: CauseText(
        "Cluster unreachable",
        "The cluster has not answered since {since}; the job starts when it does.",
    ),
}


@dataclass(frozen=True)
class Cause:
    """Why one job waits: a code and its numbers."""

    code: CauseCode
    detail: Mapping[str, object] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return CAUSES[self.code].title

    @property
    def remedies(self) -> tuple[str, ...]:
        return CAUSES[self.code].remedies

    @property
    def is_final(self) -> bool:
        return CAUSES[self.code].is_final

    def sentence(self) -> str:
        """The cause in words; a number that an older row lacks reads as “?”."""
        return CAUSES[self.code].sentence.format_map(_Lenient(self.detail))


class _Lenient(dict[str, object]):
    def __missing__(self, key: str) -> str:
        return "?"
