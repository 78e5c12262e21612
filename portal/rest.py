"""What all of the REST API shares: errors as problem+json (RFC 9457) with field paths, and cursor pages."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from rest_framework import exceptions, status
from rest_framework.pagination import CursorPagination
from rest_framework.parsers import JSONParser
from rest_framework.response import Response
from rest_framework.views import exception_handler, set_rollback


class Conflict(exceptions.APIException):
    """409."""

    status_code = status.HTTP_409_CONFLICT
    default_detail = "The request conflicts with what is there."
    default_code = "conflict"


class JsonParser(JSONParser):
    """JSON, of a depth that can be read."""

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        """The body as values. Raises ParseError."""
        try:
            return super().parse(stream, media_type, parser_context)
        except RecursionError as error:
            raise exceptions.ParseError("The body is nested too deeply.") from error


class Pages(CursorPagination):
    """Cursor pages in a total order."""

    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 200
    ordering = ("-created_at", "-id")


def problem(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """DRF's exception handler: every error as application/problem+json; None leaves real faults to Django."""
    if isinstance(error, Http404):
        error = exceptions.NotFound(str(error) or None)
    elif isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied()
    if not isinstance(error, exceptions.APIException):
        return exception_handler(error, dict(context))
    set_rollback()
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": _title(error),
        "status": error.status_code,
        "detail": _printable(str(error.detail))
        if not isinstance(error.detail, (dict, list))
        else "See errors.",
    }
    if isinstance(error, exceptions.ValidationError):
        body["errors"] = [{"field": path, "message": text} for path, text in _flat(error.detail)]
    headers = {}
    if header := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = header
    if wait := getattr(error, "wait", None):
        headers["Retry-After"] = str(int(wait))
    return Response(body, status=error.status_code, headers=headers, content_type="application/problem+json")


def _title(error: exceptions.APIException) -> str:
    return (
        "The request is not valid."
        if isinstance(error, exceptions.ValidationError)
        else str(error.default_detail)
    )


def _flat(detail: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(detail, Mapping):
        for key, each in detail.items():
            name = "" if key == "non_field_errors" else str(key)
            yield from _flat(each, f"{path}.{name}" if path and name else name or path)
    elif isinstance(detail, list):
        for index, each in enumerate(detail):
            nested = isinstance(each, (Mapping, list))
            yield from _flat(each, f"{path}[{index}]" if nested else path)
    else:
        yield _printable(path), _printable(str(detail))


def _printable(text: str) -> str:
    """The text with what UTF-8 cannot hold replaced: an error repeats what was sent (RFC 3629, section 3)."""
    return text.encode("utf-8", "replace").decode()
