"""The same rights in both places: with kubectl by ID token, and through the portal."""

import pytest

from deploy.demo.client import Client, RefusedError, hidden_fields, wait_for
from deploy.demo.scenario import demo_job
from deploy.demo.stack import Stack

pytestmark = pytest.mark.e2e

POD = """
apiVersion: v1
kind: Pod
metadata: {name: by-kubectl}
spec:
  containers: [{name: main, image: registry.example/train:1}]
"""


def test_kubectl_with_alices_token_works_in_her_namespace_and_in_no_other(healthy_stack: Stack) -> None:
    cluster, token = healthy_stack.wait_cluster(), healthy_stack.idp.mint("alice")
    whoami = wait_for(  # the API server may have started before the provider answered
        "the API server to accept the token",
        lambda: cluster.kubectl("auth", "whoami", token=token, check=False).stdout,
    )
    assert "oidc:alice" in whoami
    assert "oidc:ml-team-a" in whoami
    wait_for(
        "the team's binding",
        lambda: (
            cluster.kubectl("get", "pods", "--namespace=team-a", token=token, check=False).returncode == 0
        ),
    )
    cluster.kubectl("apply", "--namespace=team-a", "-f", "-", token=token, input=POD)
    cluster.kubectl("delete", "pod", "by-kubectl", "--namespace=team-a", "--wait=false", token=token)
    for namespace in ("team-b", "default", "kube-system", "berth-system"):
        refused = cluster.kubectl(
            "create", f"--namespace={namespace}", "-f", "-", token=token, input=POD, check=False
        )
        assert refused.returncode != 0
        assert "forbidden" in refused.stderr.lower()


def test_a_viewer_may_look_with_kubectl_and_change_nothing(healthy_stack: Stack) -> None:
    cluster, token = healthy_stack.wait_cluster(), healthy_stack.idp.mint("vera")
    wait_for(
        "the viewer's binding",
        lambda: (
            cluster.kubectl("get", "pods", "--namespace=team-a", token=token, check=False).returncode == 0
        ),
    )
    refused = cluster.kubectl("apply", "--namespace=team-a", "-f", "-", token=token, input=POD, check=False)
    assert "forbidden" in refused.stderr.lower()


@pytest.mark.parametrize("who", ["bob", "vera", "erin", "audrey"])
def test_only_developers_of_the_team_submit_for_it(healthy_stack: Stack, who: str) -> None:
    with pytest.raises(RefusedError) as refused:
        healthy_stack.client(who).post("/api/v1/jobs", demo_job("a", "not mine"))
    assert refused.value.status in (400, 403)


def test_a_strangers_job_is_not_there(healthy_stack: Stack) -> None:
    job_id = healthy_stack.client("alice").post("/api/v1/jobs", demo_job("a", "ours", run_for="2s"))["id"]
    for path in (f"/api/v1/jobs/{job_id}", f"/jobs/{job_id}/logs/streams", f"/api/v1/jobs/{job_id}/events"):
        with pytest.raises(RefusedError) as refused:
            healthy_stack.client("bob").json(path)
        assert refused.value.status == 404
    with pytest.raises(RefusedError) as refused:
        healthy_stack.client("bob").post(f"/api/v1/jobs/{job_id}/cancel")
    assert refused.value.status == 404


def test_a_token_that_is_none_or_another_issuers_is_refused(healthy_stack: Stack) -> None:
    good = healthy_stack.idp.mint("alice")
    head, body, signature = good.split(".")
    for token in ("nonsense", f"{head}.{body}.{signature[::-1]}", f"{head}.{body}."):
        client = healthy_stack.client()
        client.http.headers["Authorization"] = f"Bearer {token}"
        with pytest.raises(RefusedError) as refused:
            client.json("/api/v1/jobs")
        assert refused.value.status == 401


def test_signing_in_and_out_as_a_person(healthy_stack: Stack) -> None:
    client = healthy_stack.client()
    client.http.verify = str(healthy_stack.idp.ca_file)
    with pytest.raises(RefusedError):
        client.sign_in("alice", "wrong")
    client.sign_in("alice", "alice")
    assert client.json("/api/v1/jobs")["results"] is not None
    page = client.get("/jobs/new/")
    assert "submission_key" in page.text


def test_a_log_that_is_followed_ends_with_the_session(healthy_stack: Stack) -> None:
    person = Client(healthy_stack.url, ca_file=str(healthy_stack.idp.ca_file))
    person.sign_in("alice", "alice")
    robot = healthy_stack.client("alice")
    annotations = {"simulate/run-for": "300s", "simulate/log-lines-per-second": "10"}
    job_id = robot.post("/api/v1/jobs", demo_job("a", "followed", annotations=annotations))["id"]
    stream = wait_for("lines", lambda: next((s for s in robot.streams(job_id) if s["lines"]), None))
    reader = Client(healthy_stack.url)
    reader.http.cookies.update(person.http.cookies)
    events = reader.follow(job_id, stream["id"])
    assert any(event.startswith("data: {") for event in events)
    person.http.post(
        f"{person.url}/sign-out/",
        hidden_fields(person.get("/jobs/").text),
        headers={"Referer": person.url},
        timeout=30,
        allow_redirects=False,
    )
    list(events)  # the stream would go on for minutes: that this ends is what is shown
    assert robot.job(job_id)["state"] == "Running"
    robot.post(f"/api/v1/jobs/{job_id}/cancel")
