"""Claims to groups: anything odd grants nothing."""

from typing import Any

import pytest

from tenants.claims import groups_of


@pytest.mark.parametrize(
    ("claims", "path", "groups", "state"),
    [
        ({"groups": ["a", "b", "a"]}, "groups", ["a", "b"], "ok"),
        ({"groups": "a"}, "groups", ["a"], "ok"),
        ({"groups": []}, "groups", [], "ok"),
        ({}, "groups", [], "missing"),
        ({"_claim_names": {"groups": "src1"}}, "groups", [], "overage"),
        ({"groups": {"a": 1}}, "groups", [], "unsupported"),
        ({"groups": ["a", 1]}, "groups", [], "unsupported"),
        ({"realm_access": {"roles": ["r"]}}, "realm_access.roles", ["r"], "ok"),
        ({"https://example.org/groups": ["x"]}, "https://example.org/groups", ["x"], "ok"),
    ],
)
def test_groups_of_every_shape(claims: dict[str, Any], path: str, groups: list[str], state: str) -> None:
    assert groups_of(claims, path) == (groups, state)
