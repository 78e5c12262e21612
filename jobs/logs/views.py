"""Logs for the browser: streams, lines by number, search, download, live end (see static/js/logview.js).

A log is found through its job, and a job through the viewer: nothing is read from the cluster here.
"""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connection
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.views.decorators.http import require_GET

from jobs.logs import archive
from jobs.logs.archive import Line
from jobs.models import LogStream
from jobs.queries import get_job
from portal import live
from tenants.access import Verb, can
from tenants.login import ViewerRequest, has_same_rights
from tenants.queries import NotVisible

DEFAULT_COUNT = 500
LOOK_EVERY_SECONDS = 0.2
FOLLOW_SECONDS = 600.0
QUIET_SECONDS = 15.0
STREAM_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


def _streams(request: HttpRequest, job_id: int) -> Any:
    job = get_job(request.viewer, job_id)  # type: ignore[attr-defined]
    if not can(request.viewer, Verb.READ_TENANT_DATA, job.team_id):  # type: ignore[attr-defined]
        raise NotVisible("Logs are for members of the job's team.")
    return LogStream.objects.filter(pod__job=job).select_related("pod__job")


def _stream(request: HttpRequest, job_id: int, stream_id: int) -> LogStream:
    stream: LogStream | None = _streams(request, job_id).filter(pk=stream_id).first()
    if stream is None:
        raise NotVisible("There is no such log.")
    return stream


def _number(request: HttpRequest, name: str, default: int) -> int:
    text = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else default


@require_GET
def streams(request: ViewerRequest, job_id: int) -> JsonResponse:
    """Every container's output, in the order of the pods."""
    rows = _streams(request, job_id).order_by(
        "pod__rank", "pod__created_at", "pod_id", "kind", "container", "restart"
    )
    return JsonResponse({"streams": [_describe(row) for row in rows]})


def _describe(stream: LogStream) -> dict[str, Any]:
    state = ""
    if stream.run_state == "ended":
        state = stream.reason or ""
        if stream.exit_code is not None:
            state = f"{state}, exit {stream.exit_code}".lstrip(", ")
    return {
        "id": stream.pk,
        "pod": stream.pod.name,
        "rank": stream.pod.rank,
        "container": stream.container,
        "kind": stream.kind,
        "restart": stream.restart,
        "lines": stream.lines,
        "complete": stream.is_complete,
        "state": state,
        "waiting": "the container has not started" if stream.run_state == "waiting" else "",
        "note": stream.note,
        "gaps": len(stream.gaps),
        "cancelled": stream.pod.job is not None and stream.pod.job.cancel_requested_at is not None,
    }


@require_GET
def lines(request: ViewerRequest, job_id: int, stream_id: int) -> JsonResponse:
    """Lines by number."""
    stream = _stream(request, job_id, stream_id)
    first = _number(request, "from", 0)
    found = archive.read(stream, first, _number(request, "count", DEFAULT_COUNT))
    return JsonResponse({"first": first, "total": stream.lines, "lines": _json(stream, found)})


def _json(stream: LogStream, found: list[Line]) -> list[dict[str, Any]]:
    gaps = {gap["line"]: gap["note"] for gap in stream.gaps}
    shown = []
    for line in found:
        entry: dict[str, Any] = {"n": line.number, "t": line.stamp, "s": line.text}
        if line.is_piece:
            entry["p"] = True
        if line.number in gaps:
            entry["g"] = gaps[line.number]
        shown.append(entry)
    return shown


@require_GET
def search(request: ViewerRequest, job_id: int, stream_id: int) -> JsonResponse:
    """The nearest line that contains a text."""
    stream = _stream(request, job_id, stream_id)
    text = request.GET.get("q", "")[:200]
    if not text:
        return JsonResponse({"hits": [], "next": None})
    backwards = request.GET.get("backwards") == "1"
    hits, following = archive.search(stream, text, _number(request, "from", 0), backwards=backwards)
    return JsonResponse({"hits": hits, "next": following})


@require_GET
def raw(request: ViewerRequest, job_id: int, stream_id: int) -> HttpResponseBase:
    """The whole output as a file, byte for byte."""
    stream = _stream(request, job_id, stream_id)
    name = f"{stream.pod.name}-{stream.container}-{stream.restart}.log"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "X-Content-Type-Options": "nosniff"}
    if stream.stored_bytes > 64 * 1024 * 1024:
        return StreamingHttpResponse(
            archive.raw(stream), content_type="text/plain; charset=utf-8", headers=headers
        )
    return HttpResponse(
        b"".join(archive.raw(stream)), content_type="text/plain; charset=utf-8", headers=headers
    )


async def follow(request: HttpRequest, job_id: int, stream_id: int) -> HttpResponseBase:
    """The live end as server-sent events, from line `from` on."""
    if getattr(request, "viewer", None) is None:
        return StreamingHttpResponse(
            live.signed_out(), content_type="text/event-stream", headers=STREAM_HEADERS
        )
    stream = await sync_to_async(_stream)(request, job_id, stream_id)
    await sync_to_async(live.give_back_connection)()
    lines = _follow(stream.pk, _number(request, "from", 0))
    events = live.while_allowed(lines, lambda: has_same_rights(request))
    return StreamingHttpResponse(events, content_type="text/event-stream", headers=STREAM_HEADERS)


async def _follow(stream_id: int, first: int) -> AsyncGenerator[str, None]:
    yield ": connected\n\n"
    end = time.monotonic() + FOLLOW_SECONDS
    spoke = time.monotonic()
    while time.monotonic() < end:
        found, is_complete = await sync_to_async(_next)(stream_id, first)
        if found:
            spoke = time.monotonic()
            yield f"event: lines\ndata: {json.dumps({'first': first, 'lines': found}, separators=(',', ':'))}\n\n"
            first = int(found[-1]["n"]) + 1
            continue
        if is_complete:
            yield "event: end\ndata: \n\n"
            return
        if time.monotonic() - spoke > QUIET_SECONDS:
            spoke = time.monotonic()
            yield ": quiet\n\n"
        await asyncio.sleep(LOOK_EVERY_SECONDS)


def _next(stream_id: int, first: int) -> tuple[list[dict[str, Any]], bool]:
    """Lines from `first` on and whether these were the last; gives the connection back."""
    try:
        stream = LogStream.objects.filter(pk=stream_id).first()
        if stream is None:
            return [], True
        found = archive.read(stream, first, DEFAULT_COUNT) if stream.lines > first else []
        return _json(stream, found), stream.is_complete and not found
    finally:
        connection.close()
