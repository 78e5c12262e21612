"""The identity provider as the portal asks it: its addresses, the keys it signs with, whether a token is its own.

What was read once serves on while the provider is away: people who are signed in go on working.
"""

import json
import logging
import math
import re
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import jwt
import requests
from django.conf import settings

log = logging.getLogger(__name__)
KEEP_SECONDS = 600.0
ALIVE_SECONDS = 5.0
UNKNOWN_KEY_SECONDS = 30.0  # the key may be new; whoever invents key ids must not make us ask each time
FAILURE_SECONDS = 5.0
LEEWAY_SECONDS = 30
NEEDED = ("authorization_endpoint", "token_endpoint", "jwks_uri")
# In JSON: NUL is always escaped there. More than that would be refused, and harms nobody.
_UNSTORABLE = re.compile(r"\\u0000|[\ud800-\udfff]")
T = TypeVar("T")


class ProviderError(Exception):
    """The identity provider cannot be reached or answers nonsense; the message is for people."""


class TokenError(Exception):
    """An ID token that is not acceptable; the message says why, never its content."""


class Kept(Generic[T]):
    """A value that `read` gets from the provider, with its age. `read` raises ProviderError."""

    def __init__(self, read: Callable[[], T]) -> None:
        self._read = read
        self._value: T | None = None
        self._read_at = -math.inf
        self._failure = ""
        self._failed_at = -math.inf

    def fresh(self, max_age: float) -> T:
        """The value, at most `max_age` seconds old. Raises ProviderError.

        A failure stands for FAILURE_SECONDS, so that not every request waits for a time-out of its own.
        """
        if self._value is not None and _seconds_since(self._read_at) <= max_age:
            return self._value
        if _seconds_since(self._failed_at) <= FAILURE_SECONDS:
            raise ProviderError(self._failure)
        try:
            self._value = self._read()
        except ProviderError as error:
            self._failure, self._failed_at = str(error), time.monotonic()
            raise
        self._read_at = time.monotonic()
        return self._value

    def get(self, max_age: float) -> T:
        """The same, but an older value while a newer cannot be had. Raises ProviderError when there is none at all."""
        try:
            return self.fresh(max_age)
        except ProviderError:
            if self._value is None:
                raise
            return self._value


class Provider:
    """The provider's discovery document and keys."""

    def __init__(self) -> None:
        self._document = Kept(_read_document)
        self._keys = Kept(self._read_keys)

    def document(self) -> dict[str, Any]:
        """The discovery document. Raises ProviderError."""
        return self._document.get(KEEP_SECONDS)

    def reached(self) -> dict[str, Any]:
        """The discovery document as of now: people are only sent to a provider that answers. Raises ProviderError."""
        return self._document.fresh(ALIVE_SECONDS)

    def key(self, token: str) -> jwt.PyJWK:
        """The key that signed a token. Raises ProviderError or TokenError."""
        try:
            kid = str(jwt.get_unverified_header(token).get("kid", ""))
        except jwt.InvalidTokenError as error:
            raise TokenError("This is no ID token.") from error
        keys = self._keys.get(KEEP_SECONDS)
        if kid not in keys:
            keys = self._keys.fresh(UNKNOWN_KEY_SECONDS)
        if kid not in keys:
            raise TokenError("The token is signed with an unknown key.")
        return keys[kid]

    def claims(self, token: str) -> dict[str, Any]:
        """The claims of an ID token for us: signature, issuer, audience, expiry. Raises TokenError, ProviderError."""
        key = self.key(token)
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=["RS256"],
                audience=settings.OIDC_RP_CLIENT_ID,
                issuer=settings.BERTH_OIDC_ISSUER,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
        except jwt.InvalidTokenError as error:
            raise TokenError(f"The token is not acceptable: {error}.") from error
        if "azp" in claims and claims["azp"] != settings.OIDC_RP_CLIENT_ID:
            raise TokenError("The token was issued to another client.")
        if holds_unstorable_text(claims):
            raise TokenError("The token holds text that cannot be stored (NUL or half a surrogate pair).")
        return claims

    def _read_keys(self) -> dict[str, jwt.PyJWK]:
        try:
            keys = _fetch(self.document()["jwks_uri"])["keys"]
            return {str(each.get("kid", "")): jwt.PyJWK(each) for each in keys if each.get("kty") == "RSA"}
        except (KeyError, TypeError, AttributeError, jwt.InvalidKeyError, jwt.PyJWKError) as error:
            raise ProviderError("The identity provider publishes no keys that can be used.") from error


def holds_unstorable_text(claims: dict[str, Any]) -> bool:
    """Whether any text in there, however deep, is refused by databases or replies."""
    return _UNSTORABLE.search(json.dumps(claims, ensure_ascii=False)) is not None


def _read_document() -> dict[str, Any]:
    found = _fetch(f"{settings.BERTH_OIDC_ISSUER}/.well-known/openid-configuration")
    if found.get("issuer") != settings.BERTH_OIDC_ISSUER:
        raise ProviderError("The identity provider calls itself otherwise than BERTH_OIDC_ISSUER.")
    if missing := [name for name in NEEDED if not isinstance(found.get(name), str)]:
        raise ProviderError(f"The identity provider does not say its {missing[0]}.")
    return found


def _fetch(address: str) -> dict[str, Any]:
    try:
        answer = requests.get(address, timeout=settings.OIDC_TIMEOUT, verify=settings.OIDC_VERIFY_SSL)
        answer.raise_for_status()
        found = answer.json()
    except (requests.RequestException, ValueError) as error:
        log.warning("identity provider: %s: %s", address, type(error).__name__)
        raise ProviderError(
            "The identity provider does not answer as it should. Try again in a moment."
        ) from error
    if not isinstance(found, dict):
        raise ProviderError("The identity provider does not answer as it should. Try again in a moment.")
    return found


def _seconds_since(moment: float) -> float:
    return time.monotonic() - moment


provider = Provider()
