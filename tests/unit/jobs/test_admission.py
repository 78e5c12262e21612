"""Admission over snapshots: who starts, in which order, and what the others are told."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.admission import CAUSES, Cause, CauseCode, Decisions, Holder, Snapshot, decide
from jobs.admission.rules import ceiling
from tests.unit.jobs.snapshots import DEFAULT_TIER, job, node, snapshot, team

pytestmark = pytest.mark.unit


def admitted(decisions: Decisions) -> list[int]:
    return [each.job_id for each in decisions.admitted]


def test_a_hundred_jobs_of_one_team_do_not_block_the_single_jobs_of_two_others() -> None:
    queue = (*[job(n, team_id=1) for n in range(100)], job(100, team_id=2), job(101, team_id=3))
    teams = (
        team(1, guarantee=8, borrow_cap=16),
        team(2, guarantee=4, borrow_cap=4),
        team(3, guarantee=4, borrow_cap=4),
    )
    decisions = decide(snapshot(nodes=(node("a"), node("b")), teams=teams, queue=queue))
    assert {100, 101} <= set(admitted(decisions))
    assert len([n for n in admitted(decisions) if n < 100]) == 8  # the others' guarantees stay free for them
    assert {cause.code for cause in decisions.waiting.values()} == {CauseCode.GUARANTEED_TO_OTHERS}


def test_teams_take_turns_by_their_share_of_the_guarantee() -> None:
    queue = (*[job(n, team_id=1) for n in range(6)], *[job(n, team_id=2) for n in range(6, 12)])
    teams = (team(1, guarantee=4), team(2, guarantee=2))
    order = admitted(decide(snapshot(nodes=(node("a"),), teams=teams, queue=queue)))
    assert order == [0, 6, 1, 2, 7, 3]


def test_a_higher_tier_goes_first_whatever_the_share() -> None:
    high = job(9, team_id=1, tier_value=500_000)
    queue = (job(1, team_id=2), high)
    teams = (team(1, guarantee=1, borrow_cap=9, usage=5), team(2, guarantee=1))
    assert admitted(decide(snapshot(nodes=(node("a"),), teams=teams, queue=queue)))[0] == 9


def test_a_first_come_pool_ignores_shares() -> None:
    queue = (job(1, team_id=1), job(2, team_id=1), job(3, team_id=2))
    teams = (team(1, guarantee=8), team(2, guarantee=8))
    decisions = decide(snapshot(nodes=(node("a"),), teams=teams, queue=queue, is_fifo=True))
    assert admitted(decisions) == [1, 2, 3]


def test_large_holes_are_kept_whole() -> None:
    nodes = (node("a"), node("b", gpus_free=3))
    teams = (team(1, guarantee=16),)
    decisions = decide(snapshot(nodes=nodes, teams=teams, queue=(job(1, gpus=2), job(2, gpus=8))))
    assert [(each.job_id, each.nodes) for each in decisions.admitted] == [(1, ("b",)), (2, ("a",))]


def test_workers_that_are_not_bound_yet_hold_their_planned_room() -> None:
    holder = Holder(job_id=7, unbound_workers=1, gpus=8, cpu_milli=1, memory_bytes=1, planned_nodes=("a",))
    whole = snapshot(
        nodes=(node("a"),), teams=(team(1, guarantee=16, usage=8),), queue=(job(1),), holders=(holder,)
    )
    assert decide(whole).waiting[1].code is CauseCode.POOL_FULL


def test_a_job_of_several_workers_starts_whole_or_not_at_all() -> None:
    teams = (team(1, guarantee=32),)
    queue = (job(1, gpus=4, workers=3),)
    assert admitted(decide(snapshot(nodes=(node("a"), node("b")), teams=teams, queue=queue))) == [1]
    tight = decide(snapshot(nodes=(node("a"), node("b", gpus_free=3)), teams=teams, queue=queue))
    assert tight.admitted == ()


@pytest.mark.parametrize(
    ("situation", "changes", "expected"),
    [
        ("suspended team", {"teams": (team(1, guarantee=8, is_suspended=True),)}, CauseCode.TEAM_SUSPENDED),
        ("pool on hold", {"is_on_hold": True}, CauseCode.POOL_ON_HOLD),
        ("no grant for the tier", {"teams": (team(1, guarantee=8, tiers={}),)}, CauseCode.TIER_NOT_GRANTED),
        ("no quota", {"teams": (team(1),)}, CauseCode.NO_QUOTA_IN_POOL),
        ("no entitlement row", {"teams": ()}, CauseCode.TIER_NOT_GRANTED),
        (
            "pool wall time",
            {"queue": (job(1, wall_seconds=60),), "max_wall_seconds": 30},
            CauseCode.WALL_TIME_TOO_LONG,
        ),
        ("above the maximum", {"queue": (job(1, gpus=8, workers=2),)}, CauseCode.EXCEEDS_HARD_MAXIMUM),
        ("no such node", {"queue": (job(1, gpus=8, memory_bytes=2**50),)}, CauseCode.EXCEEDS_NODE),
        ("no usable node", {"nodes": (node("a", is_usable=False),)}, CauseCode.NO_USABLE_NODES),
        (
            "tier cap",
            {"teams": (team(1, guarantee=8, tiers={DEFAULT_TIER: 1}, usage_by_tier={DEFAULT_TIER: 1}),)},
            CauseCode.TIER_CAP_IN_USE,
        ),
        (
            "user cap",
            {"teams": (team(1, guarantee=8, per_user_cap=2, usage_by_owner={10: 2}),)},
            CauseCode.PER_USER_CAP,
        ),
        ("quota in use", {"teams": (team(1, guarantee=8, usage=8),)}, CauseCode.TEAM_QUOTA_IN_USE),
        ("pool full", {"nodes": (node("a", gpus_free=0),)}, CauseCode.POOL_FULL),
        (
            "fragmented",
            {"nodes": (node("a", gpus_free=1), node("b", gpus_free=1)), "queue": (job(1, gpus=2),)},
            CauseCode.FRAGMENTED,
        ),
        (
            "kept for others",
            {"teams": (team(1, guarantee=0, borrow_cap=8), team(2, guarantee=8))},
            CauseCode.GUARANTEED_TO_OTHERS,
        ),
        (
            "cluster away",
            {"unreachable_since": datetime(2026, 1, 1, tzinfo=UTC)},
            CauseCode.CLUSTER_UNREACHABLE,
        ),
    ],
)
def test_every_waiting_job_is_told_its_dominant_cause(
    situation: str, changes: dict[str, Any], expected: CauseCode
) -> None:
    whole: dict[str, Any] = {"nodes": (node("a"),), "teams": (team(1, guarantee=8),), "queue": (job(1),)}
    decisions = decide(snapshot(**(whole | changes)))
    assert decisions.waiting[1].code is expected, situation
    assert "?" not in decisions.waiting[1].sentence(), "every number of the sentence is there"


def test_lent_guarantees_may_be_borrowed_and_kept_ones_not() -> None:
    teams = (team(1, borrow_cap=8), team(2, guarantee=8, lend_cap=3))
    decisions = decide(snapshot(nodes=(node("a"),), teams=teams, queue=tuple(job(n) for n in range(8))))
    assert len(decisions.admitted) == 3


def test_every_code_has_its_text() -> None:
    assert set(CAUSES) == set(CauseCode)
    assert Cause(CauseCode.POOL_FULL).sentence().count("?") > 0  # an old row without numbers still reads


JOBS = st.builds(
    lambda n, t, g, w, tier: (n, t, g, w, tier),
    st.integers(0, 10_000),
    st.integers(1, 4),
    st.integers(0, 4),
    st.integers(1, 3),
    st.sampled_from([100_000, 500_000]),
)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    nodes = tuple(
        node(f"n{index}", gpus_free=draw(st.integers(0, 8)), is_usable=draw(st.booleans()))
        for index in range(draw(st.integers(0, 4)))
    )
    teams = tuple(
        team(
            number,
            guarantee=draw(st.integers(0, 8)),
            borrow_cap=draw(st.integers(0, 16)),
            hard_max=draw(st.none() | st.integers(8, 20)),
            usage=draw(st.integers(0, 6)),
        )
        for number in range(1, 5)
    )
    rows = draw(st.lists(JOBS, max_size=25, unique_by=lambda row: row[0]))
    queue = tuple(job(n, t, g, workers=w, tier_value=value) for n, t, g, w, value in rows)
    return snapshot(nodes=nodes, teams=teams, queue=queue)


@settings(max_examples=300, deadline=None)
@given(snapshots())
def test_no_limit_is_exceeded_and_every_job_is_answered_once(whole: Snapshot) -> None:
    decisions = decide(whole)
    jobs = {each.job_id: each for each in whole.queue}
    assert set(admitted(decisions)) | set(decisions.waiting) == set(jobs)
    assert not set(admitted(decisions)) & set(decisions.waiting)
    free = {each.name: each.gpus_free for each in whole.nodes if each.is_usable}
    usage = {each.team_id: each.usage for each in whole.entitlements.values()}
    for each in decisions.admitted:
        assert len(each.nodes) == jobs[each.job_id].workers
        for name in each.nodes:
            free[name] -= jobs[each.job_id].gpus
        usage[jobs[each.job_id].team_id] += whole.size_of(jobs[each.job_id])
    assert all(left >= 0 for left in free.values())
    for number in {jobs[n].team_id for n in admitted(decisions) if jobs[n].gpus}:
        assert usage[number] <= ceiling(whole.entitlements[number])


@settings(max_examples=100, deadline=None)
@given(snapshots())
def test_same_snapshot_same_decisions(whole: Snapshot) -> None:
    assert decide(whole) == decide(whole)


@settings(max_examples=200, deadline=None)
@given(snapshots())
def test_a_job_inside_its_guarantee_is_never_kept_waiting_by_quota_rules(whole: Snapshot) -> None:
    quota_codes = {CauseCode.TEAM_QUOTA_IN_USE, CauseCode.GUARANTEED_TO_OTHERS}
    decisions = decide(whole)
    taken = {number: each.usage for number, each in whole.entitlements.items()}
    for each in decisions.admitted:
        owner = next(j for j in whole.queue if j.job_id == each.job_id)
        taken[owner.team_id] += whole.size_of(owner)
    for queued in whole.queue:
        cause = decisions.waiting.get(queued.job_id)
        limit = min(whole.entitlements[queued.team_id].guarantee, ceiling(whole.entitlements[queued.team_id]))
        if cause and taken[queued.team_id] + whole.size_of(queued) <= limit:
            assert cause.code not in quota_codes
