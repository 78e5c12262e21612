"""REST: keys (RW-039), commands as given (RW-036), GPUs as numbers (RW-057), hostile text, and no 500 for any of it."""

import json
from typing import Any

import pytest
from django.test import Client

from jobs.models import Job
from tests import builders

pytestmark = [pytest.mark.integration, pytest.mark.django_db]
CREATED, REPEATED, WRONG, CONFLICT = 201, 200, 400, 409


@pytest.fixture
def alice() -> Client:
    """A developer of team vision, signed in, with the pool h100."""
    vision = builders.team("vision")
    builders.pool()
    builders.tier()
    client = Client()
    client.force_login(
        builders.person("alice", "developer", vision), backend="django.contrib.auth.backends.ModelBackend"
    )
    return client


def post(client: Client, key: str = "", **changes: Any) -> Any:
    """POST a job for one GPU, changed as told; the response."""
    body = {"team": "vision", "name": "train", "pool": "h100", "image": "registry.example/train:1", "gpus": 1}
    headers = {"Idempotency-Key": key} if key else {}
    text = json.dumps(body | changes).replace(
        "Infinity", "1e400"
    )  # JSON has no name for it, but can write it
    return client.post("/api/v1/jobs", text, content_type="application/json", headers=headers)


def test_the_same_key_gives_the_same_job(alice: Client) -> None:
    first, second = post(alice, "k"), post(alice, "k")
    assert (first.status_code, second.status_code) == (CREATED, REPEATED)
    assert first.json()["id"] == second.json()["id"]
    assert first.headers["Location"] == f"/api/v1/jobs/{first.json()['id']}"
    assert Job.objects.count() == 1


def test_the_same_key_with_another_body_conflicts(alice: Client) -> None:
    post(alice, "k")
    refused = post(alice, "k", gpus=2)
    assert refused.status_code == CONFLICT
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert Job.objects.count() == 1


def test_without_a_key_equal_bodies_are_two_jobs(alice: Client) -> None:
    assert post(alice).json()["id"] != post(alice).json()["id"]


def test_a_command_is_kept_word_for_word(alice: Client) -> None:
    words = ["-c", "print('x\"y', '$(HOME)', '$$')", "", " "]
    answer = post(alice, command=["python"], args=words)
    assert answer.status_code == CREATED
    assert answer.json()["command"] == ["python", *words]


@pytest.mark.parametrize(
    ("given", "gpus"), [("2000m", 2), ("2", 2), (2, 2), ("1e0", 1), (1.0, 1), ("0", 0), ("", 0), (None, 0)]
)
def test_whole_gpus_are_taken_however_they_are_written(alice: Client, given: Any, gpus: int) -> None:
    answer = post(alice, gpus=given)
    assert answer.status_code == CREATED, answer.content
    assert answer.json()["gpus"] == gpus


@pytest.mark.parametrize("given", ["0.5", "1500m", "-1", "two", 1e400, True, [], {}, 10**30])
def test_other_gpus_are_an_error_at_the_field(alice: Client, given: Any) -> None:
    assert_wrong(post(alice, gpus=given), "gpus")


HOSTILE = ["nul \x00 here", "half a pair \ud800", "x" * 100_000]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("field", ["name", "image", "script", "team", "pool", "cpu", "memory", "wall_time"])
def test_hostile_text_is_an_error_at_the_field(alice: Client, field: str, text: str) -> None:
    assert_wrong(post(alice, **{field: text}), field)


@pytest.mark.parametrize("text", HOSTILE[:2])
@pytest.mark.parametrize("field", ["env", "labels", "annotations"])
@pytest.mark.parametrize("place", ["key", "value"])
def test_hostile_text_in_a_mapping_is_an_error_at_the_field(
    alice: Client, field: str, text: str, place: str
) -> None:
    changes: dict[str, Any] = {field: {text: "1"} if place == "key" else {"NAME": text}}
    assert_wrong(post(alice, **changes), field)


@pytest.mark.parametrize("text", HOSTILE[:2])
@pytest.mark.parametrize("field", ["command", "args"])
def test_hostile_text_in_a_command_is_an_error_at_the_field(alice: Client, field: str, text: str) -> None:
    changes: dict[str, Any] = {field: ["python", text]}
    assert_wrong(post(alice, **changes), field)


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("env", []),
        ("env", {"A": {"B": 1}}),
        ("labels", {"berth/team": "other"}),
        ("labels", {"app.kubernetes.io/name": "x"}),
        ("annotations", {"kubernetes.io/x": "1"}),
        ("command", "python train.py"),
        ("command", [None]),
        ("workers", 10**12),
        ("workers", "1.5"),
        ("retries", -1),
        ("wall_time", "-5s"),
        ("team", None),
        ("team", "another"),
        ("tier", 7),
    ],
)
def test_a_wrong_value_is_an_error_at_the_field(alice: Client, field: str, given: Any) -> None:
    assert_wrong(post(alice, **{field: given}), field)


@pytest.mark.parametrize("body", ["", "null", "[]", "7", '"text"', "{", '{"name": NaN}', "\x00"])
def test_a_body_that_is_no_object_is_refused(alice: Client, body: str) -> None:
    answer = alice.post("/api/v1/jobs", body, content_type="application/json")
    assert answer.status_code == WRONG, answer.content
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    "query", ["state=Nonsense", "cursor=%00", "page_size=x", "q=%00", "team=%00", "q=%F0%9F%92%A9", "group=x"]
)
def test_a_strange_query_never_breaks_the_list(alice: Client, query: str) -> None:
    assert alice.get(f"/api/v1/jobs?{query}").status_code in (200, 400, 404)
    assert alice.get(f"/jobs/?{query}").status_code in (200, 400, 404)


def assert_wrong(answer: Any, field: str) -> None:
    """400 as problem+json that names the field, and no job."""
    assert answer.status_code == WRONG, answer.content[:500]
    fields = {error["field"].split(".")[0].split("[")[0] for error in answer.json()["errors"]}
    assert fields == {field}
    assert not Job.objects.exists()
