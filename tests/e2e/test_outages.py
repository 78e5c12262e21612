"""What people see while the cluster or the identity provider is away, and what becomes of their work meanwhile."""

from collections.abc import Iterator

import pytest

from deploy import devcluster
from deploy.demo.client import Client, wait_for
from deploy.demo.scenario import demo_job
from deploy.demo.stack import Stack

pytestmark = pytest.mark.e2e

API_SERVER = "kube-apiserver"
NOTICE = "Cluster state as of"


@pytest.fixture
def without_cluster(healthy_stack: Stack) -> Iterator[Stack]:
    """The stack while its API server is away, noticed by the portal; it is back after the test."""
    alice = healthy_stack.client("alice")
    wait_for(
        "the portal to see the cluster",
        lambda: 'class="notice notice-warn freshness"' not in alice.get("/").text,
    )
    devcluster.kill_component(healthy_stack.wait_cluster(), API_SERVER)
    yield healthy_stack
    devcluster.start_component(healthy_stack.wait_cluster(), API_SERVER)


@pytest.fixture
def without_provider(healthy_stack: Stack) -> Iterator[Stack]:
    """The stack while its identity provider is away; it is back after the test."""
    healthy_stack.client("alice").json("/api/v1/jobs")  # the web process has the provider's keys
    healthy_stack.stop_provider()
    yield healthy_stack
    bring_provider_back(healthy_stack)


def bring_provider_back(stack: Stack) -> None:
    """Start it, and wait until the portal sends people there again: it remembers a failure for some seconds."""
    stack.start_provider()
    http = Client(stack.url).http
    wait_for(
        "sign-in to work again",
        lambda: http.get(f"{stack.url}/sign-in/", allow_redirects=False, timeout=30).status_code == 302,
    )


def person(stack: Stack, name: str) -> Client:
    """Somebody who signed in with a browser."""
    client = Client(stack.url, ca_file=str(stack.idp.ca_file))
    client.sign_in(name, name)
    return client


def test_without_the_cluster_pages_say_so_and_jobs_wait_and_then_run(without_cluster: Stack) -> None:
    stack = without_cluster
    alice, robot = person(stack, "alice"), stack.client("alice")
    wait_for("the notice", lambda: NOTICE in alice.get("/").text)
    assert robot.json("/readyz")["cluster"] != "ok"
    job = robot.post("/api/v1/jobs", demo_job("a", "patient", pool="l4", run_for="2s"))
    for path in ("/", "/jobs/", "/cluster/", "/teams/a/", f"/jobs/{job['id']}/"):
        page = alice.get(path)
        assert page.status_code == 200
        assert NOTICE in page.text
    cause = wait_for("a cause", lambda: robot.job(job["id"])["waiting"])
    assert robot.job(job["id"])["state"] == "Queued"
    assert cause["code"] in ("ClusterUnreachable", "Considering")
    devcluster.start_component(stack.wait_cluster(), API_SERVER)
    wait_for("the job to succeed", lambda: robot.job(job["id"])["state"] == "Succeeded", seconds=240)
    wait_for("the notice to go", lambda: NOTICE not in alice.get("/").text)


def test_without_the_provider_signing_in_says_so(without_provider: Stack) -> None:
    client = Client(without_provider.url)
    page = client.http.get(f"{client.url}/sign-in/", timeout=30)
    assert page.status_code == 503
    assert "The identity provider does not answer" in page.text


def test_without_the_provider_who_is_signed_in_goes_on(healthy_stack: Stack) -> None:
    alice = person(healthy_stack, "alice")
    token = healthy_stack.idp.mint("alice")
    healthy_stack.stop_provider()
    try:
        assert alice.get("/jobs/").status_code == 200
        assert Client(healthy_stack.url, token=token).json("/api/v1/jobs")["results"] is not None
    finally:
        bring_provider_back(healthy_stack)


def test_readiness_answers_when_all_is_well(healthy_stack: Stack) -> None:
    client = healthy_stack.client()
    assert wait_for("readiness", lambda: client.get("/readyz")).status_code == 200
