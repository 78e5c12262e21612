"""Names and labels: RW-042, RW-046, RW-079."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.kube import names

DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
DNS_1035 = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
RW_042 = ["x" * 62 + "-tail", "run-" + "y" * 59 + ".z", "end-", "a--b", "v1..2", "", "...", "ünï", "9lives"]


@pytest.mark.parametrize("text", RW_042)
def test_rw042_truncated_names_stay_valid(text: str) -> None:
    for name in (names.slugify(text), names.unique_slug(text), names.job_name(text, 7, 1)):
        assert DNS_LABEL.fullmatch(name)
        assert names.is_valid_label_value(name)


@given(st.text(max_size=300), st.integers(1, 10**12), st.integers(1, 99))
def test_rw042_any_text_gives_a_valid_job_name_with_room_for_pod_suffixes(
    text: str, pk: int, attempt: int
) -> None:
    name = names.job_name(text, pk, attempt)
    assert DNS_1035.fullmatch(name)
    assert len(name) <= names.MAX_JOB_NAME
    assert name.endswith(f"-{pk}-{attempt}")


@given(st.text(max_size=100), st.text(max_size=100))
def test_rw042_different_texts_never_share_a_slug(one: str, other: str) -> None:
    assert (names.unique_slug(one) == names.unique_slug(other)) == (one == other)


def test_rw042_double_and_single_dash_stay_apart() -> None:
    assert names.unique_slug("a--b") != names.unique_slug("a-b")


@pytest.mark.parametrize("text", ["a,team notin (x)", "x=y", "1,berth/job=2", "", "１"])
def test_rw046_a_selector_is_built_from_an_id_and_nothing_else(text: str) -> None:
    with pytest.raises(ValueError, match="no job id"):
        names.selector(job=text)
    assert names.selector(job="12") == "app.kubernetes.io/managed-by=berth,berth/job=12"


IMAGE = "registry.example.org:5000/group/very-long-repository-name-for-training-images/trainer:2026.01-cuda12"


@pytest.mark.parametrize(
    ("key", "value", "is_fine"),
    [
        ("image", IMAGE, False),
        ("note", "", True),
        ("example.org/", "x", False),
        ("example.org/a", "x", True),
        ("a b", "x", False),
        ("a", "-x", False),
        ("a", "x" * 64, False),
    ],
)
def test_rw046_labels_are_validated(key: str, value: str, is_fine: bool) -> None:  # noqa: FBT001
    assert (names.is_valid_label_key(key) and names.is_valid_label_value(value)) == is_fine


@pytest.mark.parametrize(
    "key",
    [
        "berth/job",
        "kubernetes.io/hostname",
        "app.kubernetes.io/managed-by",
        "batch.kubernetes.io/x",
        "k8s.io/x",
    ],
)
def test_rw046_system_keys_are_reserved(key: str) -> None:
    assert names.is_reserved_key(key)


@pytest.mark.parametrize(
    "slug",
    [
        "kube-system",
        "kube-public",
        "kube-anything",
        "default",
        "openshift-x",
        "berth-system",
        "KUBE-SYSTEM",
        "kube_system",
    ],
)
def test_rw079_system_namespaces_are_refused(slug: str) -> None:
    assert names.namespace_problem(slug)


def test_rw079_the_operator_can_reserve_more() -> None:
    assert names.namespace_problem("team-monitoring") is None
    assert names.namespace_problem("monitoring", reserved={"monitoring"})


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        ("nvidia.com/gpu", True),
        ("nvidia.com/mig-1g.5gb", True),
        ("amd.com/gpu", True),
        ("cpu", False),
        ("memory", False),
        ("hugepages-2Mi", False),
        ("attachable-volumes-csi", False),
        ("kubernetes.io/batch-cpu", False),
        ("node.kubernetes.io/x", False),
        ("requests.nvidia.com/gpu", False),
        ("nvidia.com/", False),
        ("nvidia com/gpu", False),
        ("nvidia.com/gpu/x", False),
    ],
)
def test_a_device_plugins_resource_is_told_from_the_others(resource: str, *, expected: bool) -> None:
    assert names.is_extended_resource(resource) is expected
