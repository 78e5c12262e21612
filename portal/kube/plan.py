"""Desired and observed objects to what has to be done about the difference (pure); executed by `Cluster.execute`.

Only fields we send are compared, so fields that others own never make a difference, and a steady state makes no
writes. Objects without our labels are never adopted, changed or deleted: a desired object that exists already without
them is refused.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from portal.kube import names
from portal.kube.quantity import same_quantity

Manifest = dict[str, Any]

# Fields that cannot be changed in place: a difference there means delete, then create.
_IMMUTABLE: Mapping[str, tuple[str, ...]] = {
    "RoleBinding": ("roleRef",),
    "ClusterRoleBinding": ("roleRef",),
    "PriorityClass": ("value", "preemptionPolicy"),
}
# Kinds that are never changed once they are there: their templates cannot be.
_CREATE_ONLY = frozenset({"Job"})
# Kubernetes fills these in when they are sent empty or left out.
_EMPTY: tuple[Any, ...] = (None, "", [], {}, False, 0)


@dataclass(frozen=True)
class ObjectKey:
    """What names one object in the cluster. `namespace` is empty for kinds without."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


@dataclass(frozen=True)
class Deletion:
    """An object to delete, and only while it is still the one that was observed."""

    key: ObjectKey
    uid: str


@dataclass(frozen=True)
class Refusal:
    """A desired object that exists already and is not ours."""

    key: ObjectKey


@dataclass(frozen=True)
class Drift:
    """A field of ours that somebody else changed."""

    key: ObjectKey
    path: str
    desired: Any
    observed: Any


@dataclass(frozen=True)
class Plan:
    """What to do, in this order: delete what is replaced, apply, delete the rest."""

    apply: tuple[Manifest, ...] = ()
    delete: tuple[Deletion, ...] = ()
    replace: tuple[Deletion, ...] = ()  # deleted first; their new versions are in `apply`
    refused: tuple[Refusal, ...] = ()
    drift: tuple[Drift, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing has to be written."""
        return not (self.apply or self.delete or self.replace)


def key_of(manifest: Mapping[str, Any]) -> ObjectKey:
    """The key of a manifest or an observed object that carries its apiVersion and kind."""
    meta = manifest["metadata"]
    return ObjectKey(manifest["apiVersion"], manifest["kind"], meta.get("namespace", ""), meta["name"])


def make_plan(
    desired: Sequence[Manifest], observed: Iterable[Mapping[str, Any]], *, owner: Mapping[str, str]
) -> Plan:
    """What makes `observed` equal to `desired`, in the fields that `desired` has.

    `owner` are the labels that mark an object as belonging to what is reconciled: observed objects that carry all of
    them and are not desired are deleted; others are left alone.
    """
    there = {key_of(each): each for each in observed}
    apply: list[Manifest] = []
    replace: list[Deletion] = []
    refused: list[Refusal] = []
    drift: list[Drift] = []
    for manifest in desired:
        key = key_of(manifest)
        current = there.pop(key, None)
        stamped = with_digest(manifest)
        if current is None:
            apply.append(stamped)
            continue
        if not is_owned(current, owner):
            refused.append(Refusal(key))
            continue
        if key.kind in _CREATE_ONLY or "deletionTimestamp" in current["metadata"]:
            continue
        found = list(differences(stamped, current))
        if not found:
            continue
        if _digest_of(current) == _digest_of(stamped):  # we applied just this: somebody changed it since
            drift += [Drift(key, path, *values) for path, *values in found]
        roots = {path.split(".", 1)[0] for path, *_ in found}
        if roots & set(_IMMUTABLE.get(key.kind, ())):
            replace.append(Deletion(key, current["metadata"]["uid"]))
        apply.append(stamped)
    delete = [
        Deletion(key, current["metadata"]["uid"])
        for key, current in there.items()
        if is_owned(current, owner) and "deletionTimestamp" not in current["metadata"]
    ]
    return Plan(tuple(apply), tuple(delete), tuple(replace), tuple(refused), tuple(drift))


def is_owned(observed: Mapping[str, Any], owner: Mapping[str, str]) -> bool:
    """Whether an observed object carries every owner label."""
    labels = observed["metadata"].get("labels") or {}
    return all(labels.get(key) == value for key, value in owner.items())


def with_digest(manifest: Manifest) -> Manifest:
    """The manifest with a digest of itself as annotation: tells our own change from somebody else's."""
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    meta = manifest["metadata"]
    annotations = {**meta.get("annotations", {}), names.APPLIED_ANNOTATION: digest}
    return {**manifest, "metadata": {**meta, "annotations": annotations}}


def differences(desired: Any, observed: Any, path: str = "") -> Iterable[tuple[str, Any, Any]]:
    """(path, desired, observed) of every field in `desired` that `observed` does not hold just so.

    Lists are compared whole, maps only in the keys that are desired. Quantities are equal when they mean the same.
    """
    if isinstance(desired, Mapping):
        current = observed if isinstance(observed, Mapping) else {}
        for key, value in desired.items():
            yield from differences(value, current.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(desired, list):
        current_list = observed if isinstance(observed, list) else []
        if len(desired) != len(current_list):
            yield path, desired, observed
            return
        for index, (one, other) in enumerate(zip(desired, current_list, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif not _equal(desired, observed):
        yield path, desired, observed


def _equal(desired: Any, observed: Any) -> bool:
    if desired == observed or (desired in _EMPTY and observed in _EMPTY):
        return True
    return isinstance(desired, str) and isinstance(observed, str) and same_quantity(desired, observed)


def _digest_of(observed: Mapping[str, Any]) -> str | None:
    annotations = observed["metadata"].get("annotations") or {}
    return annotations.get(names.APPLIED_ANNOTATION)
