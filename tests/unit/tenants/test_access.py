"""Who may do what, as one table."""

from itertools import combinations

import pytest

from tenants.access import Mapped, PlatformRole, TeamRole, Verb, Viewer, can, roles_from_groups

pytestmark = pytest.mark.unit

OWN, OTHER = 1, 2
MEMBERS = "viewer developer lead"
STAFF = "admin operator auditor"
# Verb → who may do it in their own team, and who from the platform in any. Written out a second time on purpose.
EXPECTED: dict[Verb, str] = {
    Verb.SEE_TEAM: f"{MEMBERS} {STAFF}",
    Verb.SEE_JOBS: f"{MEMBERS} {STAFF}",
    Verb.READ_TENANT_DATA: MEMBERS,
    Verb.SUBMIT_JOB: "developer lead",
    Verb.CANCEL_JOB: "developer lead admin operator",
    Verb.ORDER_QUEUE: "lead admin",
    Verb.SEE_CLUSTER: f"{MEMBERS} {STAFF}",
    Verb.ADMINISTER: "admin",
    Verb.SEE_ADMINISTRATION: STAFF,
    Verb.SEE_AUDIT: "admin auditor",
}


def member(role: TeamRole) -> Viewer:
    return Viewer(1, "m", teams={OWN: role})


def staff(role: PlatformRole) -> Viewer:
    return Viewer(2, "s", platform=frozenset({role}))


def test_the_table_is_complete() -> None:
    assert set(EXPECTED) == set(Verb)


@pytest.mark.parametrize("verb", Verb)
@pytest.mark.parametrize("role", TeamRole)
def test_members_of_a_team(verb: Verb, role: TeamRole) -> None:
    assert can(member(role), verb, OWN) == (role in EXPECTED[verb].split())
    assert can(member(role), verb, OTHER) == (verb is Verb.SEE_CLUSTER)


@pytest.mark.parametrize("verb", Verb)
@pytest.mark.parametrize("role", PlatformRole)
def test_people_of_the_platform(verb: Verb, role: PlatformRole) -> None:
    assert can(staff(role), verb, OWN) == (role in EXPECTED[verb].split())


@pytest.mark.parametrize("verb", Verb)
def test_a_stranger_may_nothing(verb: Verb) -> None:
    assert not can(Viewer(3, "stranger"), verb, OWN)
    assert not can(Viewer(3, "stranger"), verb)


def test_not_all_roles_together_open_a_tenants_data_from_the_platform() -> None:
    assert not can(Viewer(4, "all", platform=frozenset(PlatformRole)), Verb.READ_TENANT_DATA, OWN)


@pytest.mark.parametrize(("lower", "higher"), list(combinations(TeamRole, 2)))
def test_the_highest_role_of_several_groups_counts_in_any_order(lower: TeamRole, higher: TeamRole) -> None:
    mappings = [Mapped("g1", lower, OWN), Mapped("g2", higher, OWN)]
    for order in (mappings, mappings[::-1]):
        assert roles_from_groups(["g1", "g2"], order) == (frozenset(), {OWN: higher})


@pytest.mark.parametrize("group", ["G1", "g1 ", " g1", "g1/", "ｇ1"])
def test_rw_051_a_group_that_only_looks_alike_gives_nothing(group: str) -> None:
    mappings = [Mapped("g1", "lead", OWN), Mapped("g1", "admin", None)]
    assert roles_from_groups([group], mappings) == (frozenset(), {})
    assert roles_from_groups(["g1"], mappings) == (frozenset({PlatformRole.ADMIN}), {OWN: TeamRole.LEAD})
