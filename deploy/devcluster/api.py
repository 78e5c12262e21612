"""A few calls to an instance's API server with a client certificate; used by cluster.py, nodes.py and podlogs.py.

Standard library only: the cluster must not depend on the product it is there to test.
"""

import http.client
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

Json = dict[str, Any]


class ApiError(Exception):
    """The API server answered with an error, or not at all (then `status` is 0)."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status or 'no answer'}: {message}")
        self.status = status


class Api:
    """The API server at `server` (https URL), as the user whose certificate `pki`/`user`.crt is."""

    def __init__(self, server: str, pki: Path, *, user: str = "admin") -> None:
        self._address = urlsplit(server).netloc
        self._context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self._context.load_cert_chain(pki / f"{user}.crt", pki / f"{user}.key")

    def request(
        self, method: str, path: str, body: Json | None = None, *, content_type: str = "application/json"
    ) -> Json:
        """One call, 30 s at most; returns the decoded answer, {} when it is not JSON. Raises ApiError."""
        connection = http.client.HTTPSConnection(self._address, timeout=30, context=self._context)
        try:
            text = json.dumps(body) if body is not None else None
            connection.request(method, path, text, {"Content-Type": content_type} if text else {})
            response = connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise ApiError(0, f"{method} {path}: {error}") from error
        finally:
            connection.close()
        if response.status >= 400:
            raise ApiError(response.status, f"{method} {path}: {_message(content)}")
        is_json = (response.headers.get("Content-Type") or "").startswith("application/json")
        return cast(Json, json.loads(content)) if is_json else {}

    def get(self, path: str) -> Json:
        """GET `path`."""
        return self.request("GET", path)

    def watch(self, path: str, resource_version: str) -> Iterator[Json]:
        """Watch events from `resource_version` on, until the server ends the watch. Raises ApiError."""
        connection = http.client.HTTPSConnection(self._address, timeout=90, context=self._context)
        try:
            # Ends well before the socket's time-out, so that a half-open connection is noticed.
            query = (
                f"watch=true&allowWatchBookmarks=true&timeoutSeconds=60&resourceVersion={resource_version}"
            )
            connection.request("GET", f"{path}?{query}")
            response = connection.getresponse()
            if response.status >= 400:
                raise ApiError(response.status, _message(response.read()))
            for line in response:
                yield json.loads(line)
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise ApiError(0, f"watch {path}: {error}") from error
        finally:
            connection.close()


def _message(content: bytes) -> str:
    try:
        return str(json.loads(content)["message"])
    except (ValueError, KeyError, TypeError):
        return content.decode(errors="replace")[:300]
