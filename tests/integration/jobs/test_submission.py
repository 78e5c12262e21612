"""Submitting: once per key from any number of processes (RW-039), with errors that name the field (RW-057)."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from jobs.actions import KeyReused, Submission, submit_job
from jobs.models import Job
from jobs.state import CommandMode
from tenants.access import TeamRole, Viewer
from tenants.actions import Denied, Rejected
from tenants.models import AuditEvent, Pool, PriorityTier, Team, User

pytestmark = [pytest.mark.integration, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def alice() -> Viewer:
    """A developer of team a, in a database with the demo's teams and pools."""
    call_command("demo", verbosity=0)
    user = User.objects.create(username="alice", issuer="https://idp.test", subject="alice")
    return Viewer(user.pk, "alice", teams={Team.objects.get(slug="a").pk: TeamRole.DEVELOPER})


def submission(**changes: Any) -> Submission:
    """A job for one GPU of team a."""
    values: dict[str, Any] = {
        "team": Team.objects.get(slug="a"),
        "pool": Pool.objects.get(slug="a100"),
        "tier": PriorityTier.objects.get(is_default=True),
        "name": "train",
        "image": "registry.example/train:1",
        "command_mode": CommandMode.ARGV,
        "argv": ("python", "train.py"),
        "gpus": 1,
    }
    return Submission(**(values | changes))


def in_parallel(work: Callable[[int], Any], count: int = 8) -> list[Any]:
    """Run `work` in threads with a database connection each; results in order."""

    def one(number: int) -> Any:
        try:
            return work(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def test_one_key_sent_by_eight_at_once_makes_one_job(alice: Viewer) -> None:
    wanted = submission(key="form:abc")
    answers = in_parallel(lambda _: submit_job(actor=alice, submission=wanted))
    assert len({job.pk for job, _ in answers}) == 1
    assert [is_new for _, is_new in answers].count(True) == 1
    assert Job.objects.count() == 1
    assert AuditEvent.objects.filter(action="submit job").count() == 1


def test_one_key_with_other_content_is_refused_and_submits_nothing(alice: Viewer) -> None:
    submit_job(actor=alice, submission=submission(key="api:abc"))
    with pytest.raises(KeyReused):
        submit_job(actor=alice, submission=submission(key="api:abc", gpus=2))
    assert Job.objects.count() == 1


def test_equal_jobs_without_a_key_are_two_jobs(alice: Viewer) -> None:
    in_parallel(lambda _: submit_job(actor=alice, submission=submission()), count=2)
    assert Job.objects.count() == 2


def test_the_same_key_of_another_person_is_another_job(alice: Viewer) -> None:
    anna = User.objects.create(username="anna", issuer="https://idp.test", subject="anna")
    lead = Viewer(anna.pk, "anna", teams=dict.fromkeys(alice.teams, TeamRole.LEAD))
    first, _ = submit_job(actor=alice, submission=submission(key="api:abc"))
    other, is_new = submit_job(actor=lead, submission=submission(key="api:abc"))
    assert is_new
    assert other.pk != first.pk


def test_a_stranger_to_the_team_is_denied_and_the_audit_says_so(alice: Viewer) -> None:
    stranger = Viewer(alice.user_id, "bob", teams={Team.objects.get(slug="b").pk: TeamRole.LEAD})
    with pytest.raises(Denied):
        submit_job(actor=stranger, submission=submission())
    assert AuditEvent.objects.get(action="submit job").outcome == "denied"
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("workers", 0),
        ("workers", 100_000),
        ("gpus", 65),
        ("image", "not an image"),
        ("labels", {"berth/team": "b"}),
        ("labels", {"note": "a/b:c,d"}),
        ("env", {"A-B": "1"}),
        ("name", ""),
        ("script", "echo \ud800"),
    ],
)
def test_bad_input_names_its_field(alice: Viewer, field: str, value: Any) -> None:
    with pytest.raises(Rejected) as caught:
        submit_job(actor=alice, submission=submission(**{field: value}))
    assert field in caught.value.errors
    assert not Job.objects.exists()
