"""Health, freshness and the news stream: pages that belong to no app."""

from datetime import timedelta

from asgiref.sync import sync_to_async
from django.db import Error
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBadRequest,
    HttpResponseBase,
    JsonResponse,
    StreamingHttpResponse,
)
from django.shortcuts import render
from django.template import loader
from django.utils import timezone

from portal import health, live
from tenants.login import ViewerRequest, has_same_rights
from tenants.queries import can_follow

MAX_TOPICS = 20
WORKER_SILENCE = timedelta(seconds=90)


def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers."""
    return HttpResponse("ok\n", content_type="text/plain")


def readyz(request: HttpRequest) -> JsonResponse:
    """Database, worker and cluster, each with its age; 503 while the database or the worker is away."""
    try:
        last = health.last_beat(health.WORKER)
    except Error:
        return JsonResponse({"database": "unreachable"}, status=503)
    is_alive = last is not None and timezone.now() - last < WORKER_SILENCE
    cluster = health.cluster_freshness()
    body = {
        "database": "ok",
        "worker": "ok" if is_alive else "silent",
        "cluster": cluster.error or ("stale" if cluster.is_stale else "ok"),
    }
    return JsonResponse(body, status=200 if is_alive else 503)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400. Django's own looks at the form's CSRF token first, and fails again on a form that cannot be read."""
    return HttpResponseBadRequest(loader.render_to_string("400.html"))


def freshness(request: ViewerRequest) -> HttpResponse:
    """The notice that the shown cluster state is old, fetched again now and then."""
    return render(request, "_freshness.html")


async def events(request: HttpRequest) -> HttpResponseBase:
    """News about topics as server-sent events, for as long as the rights stay the same."""
    topics = await sync_to_async(_topics)(request)
    if topics is None:
        return StreamingHttpResponse(
            live.signed_out(), content_type="text/event-stream", headers=STREAM_HEADERS
        )
    viewer = request.viewer  # type: ignore[attr-defined]
    # A stream must not hold a database connection for as long as a page is open.
    await sync_to_async(live.give_back_connection)()
    team_ids = None if viewer.sees_every_team else viewer.team_ids
    news = live.while_allowed(live.stream(topics, team_ids), lambda: has_same_rights(request))
    return StreamingHttpResponse(news, content_type="text/event-stream", headers=STREAM_HEADERS)


STREAM_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


def _topics(request: HttpRequest) -> list[str] | None:
    viewer = getattr(request, "viewer", None)
    if viewer is None:
        return None
    wanted = request.GET.getlist("topic")[:MAX_TOPICS]
    return [topic for topic in wanted if len(topic) <= 60 and can_follow(viewer, topic)]
