"""The one door to a cluster: apply, get, list, delete, watch, read logs, execute a plan.

Held by reconcilers, the informer, the log collector and the commands that start them; a web request never has one.
Every call has a connect and a read time-out. Answers are handed on as structs or dicts, errors as `portal.kube.errors`.
"""

import contextlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, TypeVar, cast
from urllib.parse import quote, urlencode

import msgspec
import urllib3
from kubernetes import client as kubernetes_client
from kubernetes import config as kubernetes_config

from portal.kube import names, objects
from portal.kube.errors import ClusterError, ClusterUnreachable, NotFound, error_for
from portal.kube.plan import Deletion, Manifest, ObjectKey, Plan, key_of

T = TypeVar("T")

CONNECT_SECONDS = 5.0
READ_SECONDS = 30.0
PAGE = 500
AT_ONCE = 4  # applies of one plan in flight in a process; more only make its threads wait for each other

# (apiVersion, kind) → plural in the path, whether namespaced.
_RESOURCES: Mapping[tuple[str, str], tuple[str, bool]] = {
    ("v1", "Namespace"): ("namespaces", False),
    ("v1", "Node"): ("nodes", False),
    ("v1", "Pod"): ("pods", True),
    ("v1", "Service"): ("services", True),
    ("v1", "ConfigMap"): ("configmaps", True),
    ("v1", "ServiceAccount"): ("serviceaccounts", True),
    ("v1", "ResourceQuota"): ("resourcequotas", True),
    ("v1", "LimitRange"): ("limitranges", True),
    ("batch/v1", "Job"): ("jobs", True),
    ("rbac.authorization.k8s.io/v1", "Role"): ("roles", True),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): ("rolebindings", True),
    ("networking.k8s.io/v1", "NetworkPolicy"): ("networkpolicies", True),
    ("scheduling.k8s.io/v1", "PriorityClass"): ("priorityclasses", False),
}
# What cannot be without: the rest of a plan has no order (a binding may come before its role when one may bind it).
_FIRST = frozenset({"Namespace", "PriorityClass"})
# How long the library's answer for the Authorization header is kept: it works it out anew at each call, which costs
# more than all else we do for one. Tokens are renewed long before they end.
AUTHORIZATION_SECONDS = 5.0


@dataclass(frozen=True)
class Listing(Generic[T]):
    """A whole list, and the version to watch from."""

    items: list[T]
    resource_version: str


@dataclass(frozen=True)
class Outcome:
    """What executing a plan did; errors are per object, the others went on."""

    applied: tuple[dict[str, Any], ...]
    deleted: tuple[ObjectKey, ...]
    errors: tuple[tuple[ObjectKey, ClusterError], ...]


# Inside Cluster the name `list` is its method.
Keys = list[ObjectKey]
Failures = list[tuple[ObjectKey, ClusterError]]
Objects = list[dict[str, Any]]
Batches = Iterator[list[bytes]]


class _ListMeta(objects.Struct, frozen=True):
    resource_version: str = ""
    continue_: str = objects.renamed("continue", "")


class _Page(objects.Struct, Generic[T], frozen=True):
    metadata: _ListMeta = _ListMeta()
    items: list[T] = []  # noqa: RUF012 (msgspec copies it)


class Cluster:
    """A connection to one API server under one identity; safe for threads, not for forks (see `connected`)."""

    def __init__(self, api: Any) -> None:
        self._api = api
        self._authorized: tuple[float, dict[str, str]] = (-AUTHORIZATION_SECONDS, {})
        # Kept: starting threads anew for every plan costs more than the plan's own work.
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="apply")

    @classmethod
    def connect(cls, kubeconfig: str | Path | None, *, connections: int = 32) -> "Cluster":
        """The cluster that a kubeconfig names, or, with none, the one this process runs in.

        Opens nothing yet. Raises ClusterUnreachable when the configuration cannot be read.
        """
        configuration = kubernetes_client.Configuration()
        try:
            if kubeconfig:
                kubernetes_config.load_kube_config(
                    str(kubeconfig), client_configuration=configuration, persist_config=False
                )
            else:
                kubernetes_config.load_incluster_config(client_configuration=configuration)
        except (kubernetes_config.ConfigException, OSError, ValueError) as error:
            raise ClusterUnreachable(f"The cluster's configuration cannot be read: {error}") from error
        configuration.connection_pool_maxsize = connections
        configuration.retries = urllib3.Retry(connect=1, read=0, redirect=0, status=0, other=0)
        return cls(kubernetes_client.ApiClient(configuration))

    def version(self) -> str:
        """The API server's version, as "v1.34.4"; also the cheapest sign of life."""
        answer = json.loads(self._send("GET", "/version"))
        return str(answer["gitVersion"])

    def get(self, key: ObjectKey) -> dict[str, Any]:
        """One object. Raises NotFound."""
        return cast(dict[str, Any], msgspec.json.decode(self._send("GET", _path_of(key))))

    def list(
        self,
        api_version: str,
        kind: str,
        *,
        namespace: str = "",
        label_selector: str = "",
        type: type[T],  # noqa: A002 (what the caller gets: dict or a struct of `objects`)
    ) -> Listing[T]:
        """All objects of a kind, in one namespace or everywhere, read in pages."""
        items: Any = []
        query = {"limit": str(PAGE)} | ({"labelSelector": label_selector} if label_selector else {})
        while True:
            data = self._send("GET", _path(api_version, kind, namespace), query)
            page = objects.decode(data, _Page[type])  # type: ignore[valid-type]
            items += page.items
            if not page.metadata.continue_:
                return Listing(items, page.metadata.resource_version)
            query["continue"] = page.metadata.continue_

    def apply(self, manifest: Manifest) -> dict[str, Any]:
        """Server-side apply of fields that are ours by contract: forced, under the field manager "berth"."""
        query = {"fieldManager": names.FIELD_MANAGER, "force": "true"}
        path = _path_of(key_of(manifest))
        data = self._send("PATCH", path, query, body=manifest, content_type="application/apply-patch+yaml")
        return cast(dict[str, Any], msgspec.json.decode(data))

    def merge(self, key: ObjectKey, patch: Mapping[str, Any]) -> dict[str, Any]:
        """JSON merge patch; give metadata.resourceVersion in it where lists are replaced whole (409 otherwise)."""
        data = self._send(
            "PATCH",
            _path_of(key),
            {"fieldManager": names.FIELD_MANAGER},
            body=patch,
            content_type="application/merge-patch+json",
        )
        return cast(dict[str, Any], msgspec.json.decode(data))

    def delete(self, key: ObjectKey, *, uid: str | None = None) -> None:
        """Delete an object with what it owns; with `uid`, only that very one. One that is gone is fine."""
        body: dict[str, Any] = {"propagationPolicy": "Background"}
        if uid:
            body["preconditions"] = {"uid": uid}
        with contextlib.suppress(NotFound):
            self._send("DELETE", _path_of(key), body=body)

    def execute(self, plan: Plan) -> Outcome:
        """Carry a plan out: first what is replaced goes, then everything is applied, then the rest goes."""
        deleted: Keys = []
        errors: Failures = []
        applied: Objects = []
        self._delete_all(plan.replace, deleted, errors)
        for is_first in (True, False):
            wave = [each for each in plan.apply if (each["kind"] in _FIRST) is is_first]
            for manifest, result in self._apply_all(wave):
                if isinstance(result, ClusterError):
                    errors.append((key_of(manifest), result))
                else:
                    applied.append(result)
        self._delete_all(plan.delete, deleted, errors)
        return Outcome(tuple(applied), tuple(deleted), tuple(errors))

    def access_review(
        self, *, user: str, groups: Iterable[str], namespace: str, verb: str, kind: str
    ) -> bool:
        """Whether the cluster itself would allow it (SubjectAccessReview)."""
        group, _, plural = kind.rpartition("/")
        attributes = {"namespace": namespace, "verb": verb, "group": group, "resource": plural}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": user, "groups": [*groups], "resourceAttributes": attributes},
        }
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        answer = json.loads(self._send("POST", path, body=body))
        return bool(answer["status"].get("allowed"))

    @contextlib.contextmanager
    def watch(self, api_version: str, kind: str, *, resource_version: str, seconds: int) -> Iterator[Batches]:
        """Watch events as raw lines, those that arrive together in one list, bookmarks among them.

        Ends after about `seconds`; a longer silence raises ClusterUnreachable.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(seconds),
        }
        with self._stream(_path(api_version, kind, ""), query, read_seconds=seconds + READ_SECONDS) as pieces:
            yield _lines(pieces)

    @contextlib.contextmanager
    def read_log(
        self,
        *,
        namespace: str,
        pod: str,
        container: str,
        since: datetime | None = None,
        follow: bool = False,
        previous: bool = False,
        read_seconds: float = READ_SECONDS,
    ) -> Iterator[Iterator[bytes]]:
        """A container's output with time stamps, in pieces as they arrive.

        `since` is taken in whole seconds. With `follow` the answer ends when the container does; a silence longer
        than `read_seconds` raises ClusterUnreachable, after which the caller asks again from where it stopped.
        """
        query = {"container": container, "timestamps": "true"}
        if since is not None:
            query["sinceTime"] = since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        query |= {"follow": "true"} if follow else {}
        query |= {"previous": "true"} if previous else {}
        path = f"{_path('v1', 'Pod', namespace)}/{quote(pod, safe='')}/log"
        with self._stream(path, query, read_seconds=read_seconds) as pieces:
            yield pieces

    def close(self) -> None:
        """Close idle connections and end idle threads."""
        self._threads.shutdown(wait=False)
        self._api.rest_client.pool_manager.clear()

    def _apply_all(
        self, wave: Sequence[Manifest]
    ) -> Iterator[tuple[Manifest, dict[str, Any] | ClusterError]]:
        if len(wave) < 2:
            yield from ((each, self._try_apply(each)) for each in wave)
            return
        yield from zip(wave, self._threads.map(self._try_apply, wave), strict=True)

    def _try_apply(self, manifest: Manifest) -> dict[str, Any] | ClusterError:
        try:
            return self.apply(manifest)
        except ClusterError as error:
            return error

    def _delete_all(
        self,
        deletions: Iterable[Deletion],
        deleted: Keys,
        errors: Failures,
    ) -> None:
        for each in deletions:
            try:
                self.delete(each.key, uid=each.uid)
                deleted.append(each.key)
            except ClusterError as error:
                errors.append((each.key, error))

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        body: object = None,
        content_type: str = "application/json",
    ) -> bytes:
        response = self._open(method, path, query, body, content_type, READ_SECONDS)
        try:
            data = bytes(response.read())
        except urllib3.exceptions.HTTPError as error:
            raise ClusterUnreachable(f"The answer broke off: {_words(error)}") from error
        finally:
            response.release_conn()
        if response.status >= 400:
            raise _error(response.status, data)
        return data

    @contextlib.contextmanager
    def _stream(
        self, path: str, query: Mapping[str, str], *, read_seconds: float
    ) -> Iterator[Iterator[bytes]]:
        response = self._open("GET", path, query, None, "application/json", read_seconds)
        try:
            if response.status >= 400:
                raise _error(response.status, bytes(response.read()))
            yield _pieces(response)
        except urllib3.exceptions.HTTPError as error:
            raise ClusterUnreachable(f"The answer broke off: {_words(error)}") from error
        finally:
            response.close()  # An unread rest of a stream must not go back into the pool.
            response.release_conn()

    def _open(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: object,
        content_type: str,
        read_seconds: float,
    ) -> urllib3.HTTPResponse:
        headers = {"Accept": "application/json", "Content-Type": content_type, "User-Agent": "berth"}
        try:
            answer = self._api.rest_client.pool_manager.urlopen(
                method,
                self._api.configuration.host + path + (f"?{urlencode(query)}" if query else ""),
                body=None if body is None else msgspec.json.encode(body),
                headers=headers | self._authorization(),
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=read_seconds),
                preload_content=False,
            )
        except urllib3.exceptions.HTTPError as error:
            raise ClusterUnreachable(f"The cluster does not answer: {_words(error)}") from error
        return cast(urllib3.HTTPResponse, answer)

    def _authorization(self) -> dict[str, str]:
        """The header that says who we are; empty with a client certificate."""
        since, headers = self._authorized
        now = time.monotonic()
        if now - since >= AUTHORIZATION_SECONDS:
            headers = {}
            self._api.update_params_for_auth(headers, [], ["BearerToken"], "", "GET", None)
            self._authorized = (now, headers)
        return headers


def _path(api_version: str, kind: str, namespace: str) -> str:
    plural, _is_namespaced = _RESOURCES[api_version, kind]
    root = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
    return f"{root}/namespaces/{quote(namespace, safe='')}/{plural}" if namespace else f"{root}/{plural}"


def _path_of(key: ObjectKey) -> str:
    return f"{_path(key.api_version, key.kind, key.namespace)}/{quote(key.name, safe='')}"


def _pieces(response: urllib3.HTTPResponse) -> Iterator[bytes]:
    try:
        yield from response.stream(65536, decode_content=False)
    except urllib3.exceptions.HTTPError as error:
        raise ClusterUnreachable(f"The answer broke off: {_words(error)}") from error


def _lines(pieces: Iterable[bytes]) -> Iterator[list[bytes]]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        if whole:
            yield whole


def _error(status: int, data: bytes) -> ClusterError:
    try:
        answer = json.loads(data)
    except ValueError:
        return error_for(status, "", data[:300].decode(errors="replace").strip())
    if not isinstance(answer, dict):
        return error_for(status, "", str(answer)[:300])
    causes = (answer.get("details") or {}).get("causes") or ()
    fields = tuple(dict.fromkeys(str(cause.get("field") or "") for cause in causes))
    return error_for(status, str(answer.get("reason") or ""), str(answer.get("message") or ""), fields)


def _words(error: Exception) -> str:
    """The innermost cause, without object addresses and pool names that say nothing to people."""
    reason = getattr(error, "reason", None)
    text = str(reason if isinstance(reason, Exception) else error)
    return text.rpartition(": ")[2] or type(error).__name__
