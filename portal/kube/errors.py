"""What a cluster can answer, as exceptions by meaning (pure). Raised by client.py only."""


class ClusterError(Exception):
    """The cluster refused or failed; the message holds the server's own words."""


class ClusterUnreachable(ClusterError):  # noqa: N818 (says what is the case)
    """No answer: connection refused, time-out, TLS failure, or the connection broke off."""


class BadRequest(ClusterError):  # noqa: N818
    """400: the request itself was wrong."""


class Unauthorized(ClusterError):  # noqa: N818
    """401: the portal's own credentials are not accepted."""


class Forbidden(ClusterError):  # noqa: N818
    """403: the portal's identity may not do this."""


class QuotaExceeded(Forbidden):
    """403 by a ResourceQuota; waiting may help."""


class NotFound(ClusterError):  # noqa: N818
    """404."""


class Conflict(ClusterError):  # noqa: N818
    """409: another writer owns a field, or the object changed."""


class AlreadyExists(Conflict):
    """409: an object of this name is there."""


class NamespaceTerminating(Conflict):
    """The namespace is being deleted; nothing can be created in it."""


class Gone(ClusterError):  # noqa: N818
    """410: the resource version is too old; list again."""


class Invalid(ClusterError):  # noqa: N818
    """422: `fields` are not valid. The message repeats their values, so it is for those who may read the object."""

    def __init__(self, message: str, fields: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.fields = fields


class TooManyRequests(ClusterError):  # noqa: N818
    """429: asked to slow down."""


class ServerError(ClusterError):
    """5xx."""


_BY_STATUS: dict[int, type[ClusterError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    429: TooManyRequests,
}


def error_for(status: int, reason: str, message: str, fields: tuple[str, ...] = ()) -> ClusterError:
    """The exception for an answer of the API server: HTTP status, its Status object's reason, message and fields."""
    if status == 422:
        return Invalid(message, fields)
    if "is being terminated" in message and status in (403, 409):
        return NamespaceTerminating(message)
    if status == 403 and "exceeded quota" in message:
        return QuotaExceeded(message)
    if status == 409 and reason == "AlreadyExists":
        return AlreadyExists(message)
    kind = _BY_STATUS.get(status) or (ServerError if status >= 500 else ClusterError)
    return kind(message or f"the API server answered {status}")
