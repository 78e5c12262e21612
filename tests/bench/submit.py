"""Submit → pod: `POST /api/v1/jobs` beside `kubectl create job`, one after the other, in one namespace.

The clock of both is one watch on the namespace's pods. Ours begins before the request (over a kept connection, as a
browser has), theirs before kubectl is started, as a person waits.
"""

import secrets
import threading
import time
from collections.abc import Callable

from deploy.demo.stack import Stack
from deploy.devcluster import DevCluster
from deploy.devcluster.api import Api, ApiError
from tests.bench.cluster import kubectl_with_token, wait_quiet
from tests.bench.rows import Row, median, percentile

NAMESPACE, TEAM, PERSON = "team-a", "a", "alice"
BETWEEN_SECONDS = 0.3  # so that the one does not pay for the other's aftermath
WARM_UP = 2
ALLOWED_MS = 300.0
PATIENCE_SECONDS = 60.0


class PodClock(threading.Thread):
    """When each Job's or job's first pod was seen, in monotonic seconds."""

    def __init__(self, cluster: DevCluster) -> None:
        super().__init__(daemon=True)
        self._api = Api(cluster.server, cluster.directory / "pki")
        self._path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        self._version = str(self._api.get(self._path)["metadata"]["resourceVersion"])
        self._seen: dict[str, float] = {}
        self._changed = threading.Condition()

    def run(self) -> None:
        while True:
            try:
                for event in self._api.watch(self._path, self._version):
                    now = time.monotonic()
                    self._version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] == "ADDED":
                        self._note(event["object"]["metadata"].get("labels", {}), now)
            except ApiError:
                return  # the cluster is going down; whoever waits is told by the time-out

    def wait(self, name: str) -> float:
        """When the first pod with the label value `name` was seen. Raises TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: name in self._seen, PATIENCE_SECONDS):
                raise TimeoutError(f"no pod of {name} after {PATIENCE_SECONDS:.0f} s")
            return self._seen[name]

    def _note(self, labels: dict[str, str], now: float) -> None:
        with self._changed:
            for name in (labels.get("batch.kubernetes.io/job-name"), labels.get("berth/job")):
                if name:
                    self._seen.setdefault(name, now)
            self._changed.notify_all()


def rows(stack: Stack, *, samples: int, say: Callable[[str], None]) -> list[Row]:
    """Median and 95th percentile of both, in milliseconds."""
    cluster = stack.wait_cluster()
    wait_quiet(cluster)
    person = stack.client(PERSON)
    kubectl = kubectl_with_token(cluster, stack.idp.mint(PERSON))
    clock = PodClock(cluster)
    clock.start()
    mark = secrets.token_hex(3)
    ours: list[float] = []
    theirs: list[float] = []
    for number in range(WARM_UP + samples):
        started = time.monotonic()
        job_id = person.post("/api/v1/jobs", _job(f"bench {number}"))["id"]
        ours.append(1000 * (clock.wait(str(job_id)) - started))
        time.sleep(BETWEEN_SECONDS)
        name = f"bench-{mark}-{number}"
        started = time.monotonic()
        kubectl.run("create", "job", name, f"--namespace={NAMESPACE}", "--image=registry.example/train:1")
        theirs.append(1000 * (clock.wait(name) - started))
        time.sleep(BETWEEN_SECONDS)
    del ours[:WARM_UP], theirs[:WARM_UP]
    say(f"submit: {median(ours):.0f} ms beside {median(theirs):.0f} ms")
    return [
        _row("p50", median, ours, theirs),
        _row("p95", lambda values: percentile(values, 95), ours, theirs),
    ]


def _job(name: str) -> dict[str, object]:
    """A job of the plainest kind; it ends by itself and makes room for the next."""
    return {
        "team": TEAM,
        "name": name,
        "pool": "cpu",
        "image": "registry.example/train:1",
        "command": ["python", "train.py"],
        "annotations": {"simulate/run-for": "1s"},
    }


def _row(name: str, of: Callable[[list[float]], float], ours: list[float], theirs: list[float]) -> Row:
    return Row(
        name=f"submit → pod, {name}",
        ours=of(ours),
        unit="ms",
        beside="kubectl create job",
        theirs=of(theirs),
        aim=f"<= +{ALLOWED_MS:.0f} ms",
        is_met=of(ours) <= of(theirs) + ALLOWED_MS,
        samples={"berth": ours, "kubectl": theirs} if name == "p50" else {},
    )
