"""Users of verified tokens: one for each person, however they first arrive."""

import time
from typing import Any

import pytest
from django.conf import settings

from tenants.login import user_of
from tenants.models import User
from tests.integration.jobs.test_submission import in_parallel

pytestmark = [pytest.mark.integration, pytest.mark.django_db(transaction=True)]


def claims(subject: str, **changes: Any) -> dict[str, Any]:
    """What a verified ID token says."""
    now = int(time.time())
    plain = {"iss": settings.BERTH_OIDC_ISSUER, "sub": subject, "iat": now, "groups": ["g"]}
    return plain | {"preferred_username": "kim", "name": "Kim"} | changes


def test_eight_first_requests_at_once_make_one_user() -> None:
    users = in_parallel(lambda _: user_of(claims("s1")).pk)
    assert len(set(users)) == 1
    assert User.objects.count() == 1


def test_people_of_the_same_name_stay_different_people() -> None:
    users = in_parallel(lambda number: user_of(claims(f"s{number}")))
    assert len({user.pk for user in users}) == len(users)
    names = {user.username for user in users}
    assert len(names) == len(users)
    assert "kim" in names
    assert all(name.startswith("kim") for name in names)


def test_the_same_person_is_found_again_under_a_new_name() -> None:
    first = user_of(claims("s1"))
    again = user_of(claims("s1", preferred_username="robin", name="Robin"))
    assert again.pk == first.pk
    assert again.display_name == "Robin"


def test_an_older_token_does_not_bring_back_groups() -> None:
    now = int(time.time())
    user_of(claims("s1", iat=now, groups=["b"]))
    user = user_of(claims("s1", iat=now - 60, groups=["a", "b"]))
    assert user.groups_claim == ["b"]
    assert User.objects.get().groups_claim == ["b"]
