"""Who is asking: OpenID Connect sign-in, ID tokens as bearers, and the viewer of each request.

Subclasses of mozilla-django-oidc, which by itself checks neither audience nor issuer, matches users by e-mail, and
answers a broken provider with a server error. Tokens of sign-in and API are verified alike, by `tenants/provider.py`.
"""

import hashlib
import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

import requests
from django.conf import settings
from django.contrib import auth
from django.core.exceptions import SuspiciousOperation
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from mozilla_django_oidc.auth import OIDCAuthenticationBackend
from mozilla_django_oidc.views import OIDCAuthenticationCallbackView, OIDCAuthenticationRequestView
from rest_framework import authentication, exceptions
from rest_framework.request import Request

from portal.health import cluster_freshness
from tenants.access import Verb, Viewer, can
from tenants.actions import Denied
from tenants.claims import groups_of
from tenants.models import Team, User
from tenants.provider import ProviderError, TokenError, provider
from tenants.queries import NotVisible, viewer_for

log = logging.getLogger(__name__)
VERIFIED_AT = "claims_verified_at"  # in the session
PUBLIC = ("/static/", "/healthz", "/readyz", "/sign-in/", "/signed-out/", "/oidc/", "/favicon.ico", "/api/")


class ViewerRequest(HttpRequest):
    """A request of somebody who is signed in."""

    viewer: Viewer


def user_of(claims: dict[str, Any]) -> User:
    """The user of verified claims, made at the first sign-in and brought up to date by each newer token.

    An older token that is still valid must not bring back groups that a newer one no longer names.
    """
    groups, state = groups_of(claims, settings.BERTH_OIDC_GROUPS_CLAIM)
    subject = str(claims["sub"])[:255]
    shown = str(
        claims.get(settings.BERTH_OIDC_USERNAME_CLAIM) or claims.get("preferred_username") or subject
    )[:140]
    try:
        verified_at = datetime.fromtimestamp(int(claims["iat"]), UTC)
    except (OverflowError, OSError, ValueError) as error:
        raise TokenError("The token's time is none.") from error
    columns: dict[str, Any] = {
        "display_name": str(claims.get("name") or "")[:255],
        "email": str(claims.get("email") or "")[:254],
        "groups_claim": groups,
        "claim_state": state,
        "claims_verified_at": verified_at,
    }
    user = _known(subject) or _first_seen(subject, shown, columns)
    if user.claims_verified_at is not None and verified_at < user.claims_verified_at:
        return user
    differing = [name for name, value in columns.items() if getattr(user, name) != value]
    for name in differing:
        setattr(user, name, columns[name])
    if differing:
        user.save(update_fields=differing)
    return user


def _known(subject: str) -> User | None:
    return User.objects.filter(issuer=settings.BERTH_OIDC_ISSUER, subject=subject).first()


def _first_seen(subject: str, shown: str, columns: Mapping[str, Any]) -> User:
    """A new user. Names are shown, never compared: two people of the same name stay two."""
    digest = hashlib.sha256(f"{settings.BERTH_OIDC_ISSUER} {subject}".encode()).hexdigest()[:8]
    for username in (shown, f"{shown}-{digest}"):
        user = User(issuer=settings.BERTH_OIDC_ISSUER, subject=subject, username=username, **columns)
        user.set_unusable_password()
        try:
            with transaction.atomic():
                user.save()
        except IntegrityError:
            # Either the name is somebody else's, or another request of the same person was first.
            if (known := _known(subject)) is not None:
                return known
        else:
            return user
    raise TokenError(f"The user name “{shown}” is taken.")


class OidcBackend(OIDCAuthenticationBackend):  # type: ignore[misc]
    """The code flow with our own verification of tokens and our own matching of users."""

    def authenticate(self, request: HttpRequest | None, **kwargs: Any) -> User | None:
        if request is None or "nonce" not in kwargs:
            return None
        document = provider.document()
        self.OIDC_OP_TOKEN_ENDPOINT = document["token_endpoint"]
        return cast(User | None, super().authenticate(request, **kwargs))

    def verify_token(self, token: str, **kwargs: Any) -> dict[str, Any]:
        claims = provider.claims(token)
        if not kwargs.get("nonce") or claims.get("nonce") != kwargs["nonce"]:
            raise TokenError("The token does not belong to this sign-in.")
        return claims

    def get_or_create_user(self, access_token: str, id_token: str, payload: dict[str, Any]) -> User:
        return user_of(payload)


class SignIn(OIDCAuthenticationRequestView):  # type: ignore[misc]
    """Sends the browser to the provider; a page with a way on when there is none."""

    def get(self, request: HttpRequest) -> HttpResponseBase:
        try:
            self.OIDC_OP_AUTH_ENDPOINT = provider.reached()["authorization_endpoint"]
        except ProviderError as error:
            if _is_within_grace(request):
                # The renewal can wait: work goes on with what was last verified.
                request.session["renew_not_before"] = time.time() + 60
                return redirect(_safe_next(request))
            return _failed(request, str(error), "provider unreachable", status=503)
        return cast(HttpResponse, super().get(request))


class Callback(OIDCAuthenticationCallbackView):  # type: ignore[misc]
    """The way back from the provider."""

    def get(self, request: HttpRequest) -> HttpResponseBase:
        if request.GET.get("error"):
            return _failed(
                request, "The identity provider refused the sign-in.", request.GET["error"][:60], status=403
            )
        try:
            answer = super().get(request)
        except ProviderError as error:
            return _failed(request, str(error), "provider unreachable", status=503)
        except (TokenError, SuspiciousOperation, requests.RequestException, KeyError, ValueError) as error:
            log.warning("sign-in failed: %s", type(error).__name__)
            text = str(error) if isinstance(error, TokenError) else "The sign-in was not completed in order."
            return _failed(request, text, type(error).__name__, status=400)
        return cast(HttpResponse, answer)

    def login_success(self) -> HttpResponseRedirect:
        answer = cast(HttpResponseRedirect, super().login_success())
        self.request.session[VERIFIED_AT] = time.time()
        self.request.session.pop("renew_not_before", None)
        return answer

    def login_failure(self) -> HttpResponse:
        return _failed(
            self.request, "The sign-in was not completed. Please start again.", "no session", status=400
        )


def _failed(request: HttpRequest, text: str, code: str, *, status: int) -> HttpResponse:
    return render(request, "tenants/sign_in_failed.html", {"text": text, "code": code}, status=status)


def _safe_next(request: HttpRequest) -> str:
    address = request.GET.get("next", "/")
    fits = url_has_allowed_host_and_scheme(address, allowed_hosts={request.get_host()}, require_https=False)
    return address if fits else "/"


def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session here and, where the provider offers it, there."""
    if request.method != "POST":
        return redirect("/")
    token = request.session.get("oidc_id_token")
    auth.logout(request)
    try:
        address = provider.document().get("end_session_endpoint") if token else None
    except ProviderError:
        address = None
    back = request.build_absolute_uri(reverse("signed-out"))
    if not address:
        return redirect(back)
    query: dict[str, str] = {
        "id_token_hint": str(token),
        "post_logout_redirect_uri": back,
        "client_id": settings.OIDC_RP_CLIENT_ID,
    }
    return HttpResponseRedirect(f"{address}?{urlencode(query)}")


def signed_out(request: HttpRequest) -> HttpResponse:
    """The page after signing out."""
    return render(request, "tenants/signed_out.html", {"was_signed_in": True})


class ViewerMiddleware:
    """Gives each request its viewer and sends everybody else to sign in; renews claims that have grown old.

    Also answers NotVisible as 404, the same for what is not there and what is another's, and Denied as 403.
    """

    def __init__(self, get_response: Any) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        user = request.user
        is_known = isinstance(user, User) and user.is_active
        if is_known and not request.path.startswith("/static/"):
            if _is_over(request):
                auth.logout(request)
                is_known = False
            else:
                cast(Any, request).viewer = viewer_for(cast(User, user))
        if request.path.startswith(PUBLIC):
            return cast(HttpResponseBase, self._get_response(request))
        if not is_known and request.method in ("GET", "HEAD") and (token := bearer_token(request.headers)):
            return self._read_with_token(request, token)
        if not is_known:
            return _to_sign_in(request)
        if _wants_renewal(request):
            return _to_sign_in(request)
        return cast(HttpResponseBase, self._get_response(request))

    def _read_with_token(self, request: HttpRequest, token: str) -> HttpResponseBase:
        """Scripts read logs where pages do; what changes something goes through the API."""
        try:
            user = user_of(provider.claims(token))
        except TokenError as error:
            return HttpResponse(f"{error}\n", status=401, content_type="text/plain")
        except ProviderError as error:
            return HttpResponse(f"{error}\n", status=503, content_type="text/plain")
        if not user.is_active:
            return HttpResponse("This user is disabled.\n", status=401, content_type="text/plain")
        cast(Any, request).viewer = viewer_for(user)
        return cast(HttpResponseBase, self._get_response(request))

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """A row that is not the viewer's looks like one that is not there; what an action denied is said so."""
        if isinstance(error, NotVisible):
            return render(request, "404.html", {"text": str(error)}, status=404)
        if isinstance(error, Denied):
            return render(request, "403.html", {"title": "Not allowed", "text": str(error)}, status=403)
        return None


def has_same_rights(request: HttpRequest) -> bool:
    """Whether whoever asked for a long answer still may the same: session or token good, groups unchanged."""
    then: Viewer = cast(Any, request).viewer
    user = User.objects.filter(pk=then.user_id, is_active=True).first()
    if user is None or not _is_still_valid(request):
        return False
    now = viewer_for(user)
    return now.platform == then.platform and dict(now.teams) == dict(then.teams)


def _is_still_valid(request: HttpRequest) -> bool:
    if request.user.is_authenticated:
        key = request.session.session_key
        return key is not None and request.session.exists(key) and not _is_over(request)
    try:
        provider.claims(bearer_token(request.headers))
    except (TokenError, ProviderError):
        return False
    return True


def _age(request: HttpRequest) -> float:
    verified = request.session.get(VERIFIED_AT)
    # Sessions that did not come from the provider (superusers of Django's own admin) do not age.
    return 0.0 if verified is None else time.time() - float(verified)


def _is_over(request: HttpRequest) -> bool:
    return _age(request) > settings.BERTH_SESSION_RENEWAL_SECONDS + settings.BERTH_SESSION_GRACE_SECONDS


def _is_within_grace(request: HttpRequest) -> bool:
    return request.user.is_authenticated and VERIFIED_AT in request.session and not _is_over(request)


def _wants_renewal(request: HttpRequest) -> bool:
    """Only whole pages are sent away: a form, a fragment or a stream would lose something on the way."""
    is_page = request.method == "GET" and request.headers.get("Sec-Fetch-Dest", "document") == "document"
    if (
        not is_page
        or request.headers.get("HX-Request")
        or "text/html" not in request.headers.get("Accept", "")
    ):
        return False
    if time.time() < request.session.get("renew_not_before", 0):
        return False
    return _age(request) > settings.BERTH_SESSION_RENEWAL_SECONDS


def _to_sign_in(request: HttpRequest) -> HttpResponse:
    target = request.get_full_path() if request.method == "GET" else "/"
    address = f"{reverse('sign-in')}?{urlencode({'next': target})}"
    if request.headers.get("HX-Request"):
        return HttpResponse(status=401)  # the page stays as it is and says so (static/js/live.js)
    if "text/html" not in request.headers.get("Accept", "text/html") and "*/*" not in request.headers.get(
        "Accept", ""
    ):
        return HttpResponse("Sign in first.\n", status=401, content_type="text/plain")
    return redirect(address)


def page_context(request: HttpRequest) -> dict[str, Any]:
    """What every page shows around its content: memberships, the New-job button, how fresh the cluster is."""
    viewer = getattr(request, "viewer", None)
    if not isinstance(viewer, Viewer):
        return {}
    teams = Team.objects.filter(pk__in=viewer.team_ids).order_by("slug")
    return {
        "memberships": [{"team": team, "role": viewer.teams[team.pk]} for team in teams],
        "may_submit": any(can(viewer, Verb.SUBMIT_JOB, team_id) for team_id in viewer.team_ids),
        "cluster": cluster_freshness(),
    }


def bearer_token(headers: Mapping[str, str]) -> str:
    """The token of an `Authorization: Bearer` header, empty when there is none."""
    scheme, _, token = headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


class BearerAuthentication(authentication.BaseAuthentication):
    """`Authorization: Bearer <ID token>`, verified offline: signature, issuer, audience, expiry."""

    def authenticate(self, request: Request) -> tuple[User, dict[str, Any]] | None:
        token = bearer_token(request.headers)
        if not token:
            return None
        try:
            claims = provider.claims(token)
        except TokenError as error:
            raise exceptions.AuthenticationFailed(str(error)) from error
        except ProviderError as error:
            raise Unavailable(str(error)) from error
        user = user_of(claims)
        if not user.is_active:
            raise exceptions.AuthenticationFailed("This user is disabled.")
        cast(Any, request._request).viewer = viewer_for(user)
        return user, claims

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="berth"'


class Unavailable(exceptions.APIException):
    """503."""

    status_code = 503
    default_detail = "Temporarily unavailable."
    default_code = "unavailable"


class SessionAuthentication(authentication.SessionAuthentication):
    """The browser's session, with CSRF protection; its viewer was set by the middleware."""

    def authenticate(self, request: Request) -> Any:
        if not isinstance(getattr(request._request, "viewer", None), Viewer):
            return None
        return super().authenticate(request)
