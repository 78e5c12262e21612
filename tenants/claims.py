"""The provider's claims to group names (pure). Anything odd grants nothing, and says what was odd."""

from collections.abc import Mapping
from typing import Any

OK, MISSING, OVERAGE, UNSUPPORTED = "ok", "missing", "overage", "unsupported"
MAX_GROUPS = 1000


def groups_of(claims: Mapping[str, Any], path: str) -> tuple[list[str], str]:
    """The groups at `path` ("groups", "realm_access.roles" or a name with dots of its own), and how that went.

    A list of texts or one text. An overage notice (`_claim_names`, as Entra ID sends it) counts as no groups at all:
    part of the truth would be worse than none.
    """
    value = _at(claims, path)
    if value is None:
        names = claims.get("_claim_names")
        has_overage = bool(claims.get("hasgroups")) or (isinstance(names, Mapping) and path in names)
        return [], OVERAGE if has_overage else MISSING
    if isinstance(value, str):
        value = [value] if value else []
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        return [], UNSUPPORTED
    if len(value) > MAX_GROUPS:
        return [], OVERAGE
    return list(dict.fromkeys(each for each in value if each)), OK


def _at(claims: Mapping[str, Any], path: str) -> Any:
    if path in claims:
        return claims[path]
    found: Any = claims
    for part in path.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(part)
    return found
