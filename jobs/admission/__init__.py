"""Who runs next, and why the others wait (pure: a snapshot and nothing else in, decisions out).

    snapshot.py   the values admission looks at: one pool, its nodes, entitlements, holders, queue
    rules.py      one small predicate per limit, each citing its rule and naming its cause
    placement.py  whole-job fit on real nodes
    order.py      tier, then share of the guarantee, then the team's own order, then age
    causes.py     the one table of waiting causes: page text, API code, documentation
    decide.py     the pass itself: `decide(snapshot) -> Decisions`

Called by `jobs/reconcile.py:admit_pool` while it holds the pool's claim. Kueue's words map to ours as: ClusterQueue
with its ResourceFlavor ≙ Pool, LocalQueue ≙ Team in a pool, Workload ≙ Job, nominalQuota ≙ guarantee.
Confusions: *quota* is what a team is allowed, *usage* what it holds, *capacity* what exists, *allocatable* what of
it works.
"""

from jobs.admission.causes import CAUSES, Cause, CauseCode
from jobs.admission.decide import Admission, Decisions, decide
from jobs.admission.snapshot import Entitlement, Holder, NodeRoom, QueuedJob, Snapshot

__all__ = [
    "CAUSES",
    "Admission",
    "Cause",
    "CauseCode",
    "Decisions",
    "Entitlement",
    "Holder",
    "NodeRoom",
    "QueuedJob",
    "Snapshot",
    "decide",
]
