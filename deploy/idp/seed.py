"""The provider's people and its one client; run inside the provider's own Django (see __main__.py)."""

from collections.abc import Sequence

from django.contrib.auth.models import Group, User
from oauth2_provider.models import Application

CLIENT_ID = "berth-portal"
PEOPLE: dict[str, tuple[str, ...]] = {
    "alice": ("ml-team-a",),
    "anna": ("ml-team-a-leads",),
    "bob": ("ml-team-b",),
    "charlie": ("ml-team-c",),
    "vera": ("ml-team-a-viewers",),
    "oscar": ("ml-operators",),
    "dana": ("ml-platform-admins",),
    "audrey": ("ml-auditors",),
    "erin": (),
}


def seed(*, redirect_uris: Sequence[str], client_secret: str) -> None:
    """People who are not there yet, and the client with these addresses. Changed groups are left as they are."""
    for username, groups in PEOPLE.items():
        user, created = User.objects.get_or_create(username=username, email=f"{username}@example.org")
        if created:
            user.set_password(username)
            user.save()
            set_groups(username, groups)
    Application.objects.update_or_create(
        client_id=CLIENT_ID,
        defaults={
            "name": "Berth",
            "client_type": Application.CLIENT_CONFIDENTIAL,
            "client_secret": client_secret,
            "authorization_grant_type": Application.GRANT_AUTHORIZATION_CODE,
            "algorithm": Application.RS256_ALGORITHM,
            "skip_authorization": True,
            "redirect_uris": "\n".join(redirect_uris),
            "post_logout_redirect_uris": "\n".join(redirect_uris),
        },
    )


def is_known(username: str) -> bool:
    """Whether the provider has somebody of that name."""
    return User.objects.filter(username=username).exists()


def set_groups(username: str, groups: Sequence[str]) -> None:
    """Put somebody into exactly these groups."""
    rows = [Group.objects.get_or_create(name=name)[0] for name in groups]
    User.objects.get(username=username).groups.set(rows)
