"""What this provider's tokens say of somebody; named in settings.OAUTH2_VALIDATOR_CLASS."""

from typing import Any, ClassVar

from oauth2_provider.oauth2_validators import OAuth2Validator


class Validator(OAuth2Validator):  # type: ignore[misc]  # the library has no types
    """Adds the user name as `sub` (the default is a number) and the groups, a list, empty when there are none."""

    oidc_claim_scope: ClassVar[dict[str, str]] = OAuth2Validator.oidc_claim_scope | {"groups": "groups"}

    def get_additional_claims(self) -> dict[str, Any]:
        # Without a request argument: the library then names these claims in its discovery document.
        return {
            "sub": lambda request: request.user.username,
            "preferred_username": lambda request: request.user.username,
            "name": lambda request: request.user.username.capitalize(),
            "email": lambda request: request.user.email,
            "email_verified": lambda request: True,
            "groups": lambda request: sorted(request.user.groups.values_list("name", flat=True)),
        }
