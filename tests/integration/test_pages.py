"""Every page as every kind of person: what opens, what is refused, what does not exist; forms; query counts."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobs.models import Job
from jobs.state import JobState
from portal import health
from portal.views import WORKER_SILENCE
from tenants.models import AuditEvent
from tests import builders
from tests.integration.scene import Scene

pytestmark = [pytest.mark.integration, pytest.mark.django_db]


# One line for each page: the status for admin, auditor, developer, viewer, stranger and nobody.
WHO = ("admin", "auditor", "developer", "viewer", "stranger", "nobody")
PAGES = {
    "/": (200, 200, 200, 200, 200, 200),
    "/jobs/": (200, 200, 200, 200, 200, 200),
    "/jobs/?state=Queued&q=train&pool=h100": (200, 200, 200, 200, 200, 200),
    "/jobs/?state=Nonsense": (200, 200, 200, 200, 200, 200),
    "/jobs/new/": (403, 403, 200, 403, 200, 403),
    "/jobs/new/?from={running}": (403, 403, 200, 403, 200, 403),
    "/jobs/{running}/": (200, 200, 200, 200, 404, 404),
    "/jobs/{waiting}/": (200, 200, 200, 200, 404, 404),
    "/jobs/{running}/cancel/": (200, 403, 200, 403, 404, 404),
    "/jobs/999999/": (404, 404, 404, 404, 404, 404),
    "/cluster/": (200, 200, 200, 200, 200, 403),
    "/teams/": (200, 200, 200, 200, 200, 200),
    "/teams/vision/": (200, 200, 200, 200, 404, 404),
    "/pools/": (200, 200, 403, 403, 403, 403),
    "/pools/new/": (200, 403, 403, 403, 403, 403),
    "/pools/h100/": (200, 403, 403, 403, 403, 403),
    "/quotas/": (200, 200, 403, 403, 403, 403),
    "/quotas/vision/h100/": (200, 403, 403, 403, 403, 403),
    "/quotas/language/h100/": (200, 403, 403, 403, 403, 403),
    "/tiers/": (200, 200, 403, 403, 403, 403),
    "/groups/": (200, 200, 403, 403, 403, 403),
    "/groups/new/": (200, 403, 403, 403, 403, 403),
    "/groups/999999/remove/": (404, 403, 403, 403, 403, 403),
    "/teams/new/": (200, 403, 403, 403, 403, 403),
    "/audit/": (200, 200, 404, 404, 404, 404),
    "/audit/?find=submit&outcome=done": (200, 200, 404, 404, 404, 404),
}


@pytest.mark.parametrize("address", PAGES)
def test_each_page_opens_for_whom_it_is_meant(scene: Scene, address: str) -> None:
    path = address.format(running=scene.running.pk, waiting=scene.waiting.pk)
    answers = {name: scene.client(name).get(path) for name in WHO}

    assert tuple(answers[name].status_code for name in WHO) == PAGES[address]
    for name, answer in answers.items():
        text = answer.content.decode()
        assert not re.search(r"<[^>]+\s(style|on[a-z]+)=", text), f"{name}: the policy allows no inline code"
        assert not re.search(r"<script(?![^>]*\ssrc=)", text), f"{name}: the policy allows no inline script"
        ids = re.findall(r'\sid="([^"]+)"', text)
        assert len(ids) == len(set(ids)), f"{name}: an id stands twice"


def test_pages_send_people_without_a_session_to_sign_in(scene: Scene) -> None:
    answer = Client().get(f"/jobs/{scene.running.pk}/")

    assert answer.status_code == 302
    assert answer["Location"].startswith("/sign-in/?next=")


def test_a_background_request_without_a_session_sends_nobody_away(scene: Scene) -> None:
    answer = Client().get("/freshness", headers={"HX-Request": "true"})

    assert answer.status_code == 401
    assert not answer.content
    assert "HX-Redirect" not in answer.headers


def test_a_waiting_job_says_why_on_its_page_the_list_and_home(scene: Scene) -> None:
    client = scene.client("developer")
    sentence = "Vision holds 1 of the 16 GPUs it may hold in H100; this job needs 16."

    for path in (f"/jobs/{scene.waiting.pk}/", "/jobs/", "/"):
        assert sentence in client.get(path).content.decode()
    assert "TeamQuotaInUse" in client.get(f"/jobs/{scene.waiting.pk}/").content.decode()


def test_command_and_environment_are_shown_to_the_team_only(scene: Scene) -> None:
    path = f"/jobs/{scene.running.pk}/"

    assert "ketchup" in scene.client("viewer").get(path).content.decode()
    for name in ("admin", "auditor", "operator"):
        text = scene.client(name).get(path).content.decode()
        assert "train.py" not in text
        assert "ketchup" not in text
        assert "data-logview" not in text


def test_what_a_program_said_at_its_end_is_shown_to_the_team_only(scene: Scene) -> None:
    pod = scene.running.pods.get()
    pod.containers = [dict(pod.containers[0], state="terminated", exit_code=1, message="ketchup ran out")]
    pod.save()
    path = f"/api/v1/jobs/{scene.running.pk}/pods"

    assert scene.client("viewer").get(path).json()[0]["containers"][0]["message"] == "ketchup ran out"
    for name in ("admin", "auditor", "operator"):
        answer = scene.client(name).get(path)
        assert answer.json()[0]["containers"][0]["exit_code"] == 1
        assert "ketchup" not in answer.content.decode()
    assert scene.client("stranger").get(path).status_code == 404


def test_the_form_of_another_team_s_job_starts_empty(scene: Scene) -> None:
    answer = scene.client("stranger").get(f"/jobs/new/?from={scene.running.pk}")

    assert "train.py" not in answer.content.decode()


def test_the_map_names_other_teams_only_to_platform_roles(scene: Scene) -> None:
    assert "Vision" in scene.client("admin").get("/cluster/").content.decode()
    text = scene.client("stranger").get("/cluster/").content.decode()
    assert "Vision" not in text
    assert f"/jobs/{scene.running.pk}/" not in text


def test_a_submitted_form_makes_a_job_and_sends_the_browser_to_it(scene: Scene) -> None:
    answer = scene.client("developer").post("/jobs/new/", scene.submission())

    job = Job.objects.get(name="typed")
    assert (answer.status_code, answer["Location"]) == (302, f"/jobs/{job.pk}/")
    assert job.argv == ["python", "train.py", "--lr", "0.1"]


def test_the_same_form_sent_twice_makes_one_job(scene: Scene) -> None:
    client = scene.client("developer")

    first, second = (client.post("/jobs/new/", scene.submission()) for _ in range(2))

    assert first["Location"] == second["Location"]
    assert Job.objects.filter(name="typed").count() == 1


def test_the_same_form_token_with_other_content_is_refused(scene: Scene) -> None:
    client = scene.client("developer")
    client.post("/jobs/new/", scene.submission())

    answer = client.post("/jobs/new/", scene.submission(name="other"))

    assert answer.status_code == 422
    assert "already submitted" in answer.content.decode()
    assert not Job.objects.filter(name="other").exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("image", "has a space"),
        ("command", "echo 'never closed"),
        ("env", "1BAD=x"),
        ("env", "no equals sign"),
        ("workers", "0"),
        ("gpus", "half"),
        ("gpus", "1000"),
        ("cpu", "many"),
        ("memory", "lots"),
        ("wall_time", "soon"),
        ("pool", "elsewhere"),
        ("team", "language"),
        ("labels", "bad key!=x"),
    ],
)
def test_an_error_stands_at_its_field_and_links_to_it(scene: Scene, field: str, value: str) -> None:
    answer = scene.client("developer").post("/jobs/new/", scene.submission(**{field: value}))

    text = answer.content.decode()
    assert answer.status_code == 422
    assert f'href="#id_{field}"' in text
    assert f'id="id_{field}_error"' in text
    assert re.search(rf'<(input|select|textarea)[^>]*name="{field}"[^>]*aria-invalid="true"', text)
    assert not Job.objects.filter(name="typed").exists()


@pytest.mark.parametrize(
    "field", ["team", "pool", "tier", "name", "image", "command", "submission_key", "env"]
)
def test_a_nul_in_the_form_is_an_error_and_no_fault(scene: Scene, field: str) -> None:
    answer = scene.client("developer").post("/jobs/new/", scene.submission(**{field: "a\x00b"}))
    assert answer.status_code == 422
    assert Job.objects.count() == 2


@pytest.mark.parametrize("path", ["/", "/jobs/", "/jobs/new/", "/audit/", "/teams/", "/quotas/"])
@pytest.mark.parametrize(
    "name",
    ["q", "state", "group", "team", "pool", "tier", "owner", "page", "from", "find", "outcome", "topic"],
)
def test_a_nul_in_an_address_is_no_fault(scene: Scene, path: str, name: str) -> None:
    for value in ("%00", "%ED%A0%80", "9" * 40, "-1"):
        for person in ("admin", "developer"):
            assert scene.client(person).get(f"{path}?{name}={value}").status_code < 500


def test_a_viewer_cannot_submit(scene: Scene) -> None:
    assert scene.client("viewer").post("/jobs/new/", scene.submission()).status_code == 403
    assert not Job.objects.filter(name="typed").exists()


def test_cancel_asks_first_and_then_cancels(scene: Scene) -> None:
    client, path = scene.client("developer"), f"/jobs/{scene.waiting.pk}/cancel/"

    question = client.get(path).content.decode()
    scene.waiting.refresh_from_db()
    assert "Cancel the job" in question
    assert f'href="/jobs/{scene.waiting.pk}/"' in question
    assert scene.waiting.state == JobState.QUEUED

    answer = client.post(path, {"confirmed": "1"}, follow=True)
    scene.waiting.refresh_from_db()
    assert scene.waiting.state == JobState.CANCELLED
    assert f"You cancelled job #{scene.waiting.pk}." in answer.content.decode()


def test_a_viewer_s_cancel_is_refused_and_audited(scene: Scene) -> None:
    answer = scene.client("viewer").post(f"/jobs/{scene.waiting.pk}/cancel/")

    assert answer.status_code == 403
    assert AuditEvent.objects.filter(action="cancel job", actor="viewer", outcome="denied").exists()


def test_a_live_update_does_not_swallow_the_message_meant_for_the_next_page(scene: Scene) -> None:
    client = scene.client("developer")
    client.post(f"/jobs/{scene.waiting.pk}/cancel/")

    client.get("/jobs/", headers={"HX-Request": "true"})

    assert f"You cancelled job #{scene.waiting.pk}." in client.get("/jobs/").content.decode()


@pytest.mark.parametrize("path", ["/", "/jobs/", "/cluster/", "/teams/", "/teams/vision/", "/jobs/new/"])
def test_pages_take_as_many_queries_for_25_jobs_as_for_5(scene: Scene, path: str) -> None:
    client, developer = scene.client("developer"), scene.people["developer"]

    def queries_with(jobs: int) -> int:
        row = scene.waiting
        while Job.objects.count() < jobs:
            job = builders.job(developer, row.team, row.pool, row.tier)
            if job.pk % 2:
                Job.objects.filter(pk=job.pk).update(state=JobState.RUNNING, attempt=1, waiting_code="")
                job.refresh_from_db()
                builders.worker(job, "node-1")
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert client.get(path).status_code == 200
        return len(queries)

    queries_with(5)  # content types and alike are read once
    assert queries_with(5) == queries_with(25)


def test_readiness_names_the_part_that_is_away() -> None:
    client = Client()
    assert client.get("/healthz").status_code == 200
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["worker"]) == (503, "silent")
    health.beat(health.WORKER, now=timezone.now() - 2 * WORKER_SILENCE)
    assert client.get("/readyz").json() == {"database": "ok", "worker": "silent", "cluster": "stale"}
    health.beat(health.WORKER, now=timezone.now())
    health.beat(health.CLUSTER, now=timezone.now())
    answer = client.get("/readyz")
    assert (answer.status_code, set(answer.json().values())) == (200, {"ok"})


def test_somebody_without_a_team_sees_the_groups_the_provider_named(scene: Scene) -> None:
    person = scene.people["nobody"]
    person.groups_claim, person.claim_state = ["Research/Guests"], "ok"
    person.save()
    text = scene.client("nobody").get("/").content.decode()
    assert "Research/Guests" in text
    assert 'action="/sign-out/"' in text


def test_a_chosen_state_counts_alone(scene: Scene) -> None:
    text = scene.client("developer").get("/jobs/?group=finished&state=Running").content.decode()
    assert scene.running.name in text
    assert scene.waiting.name not in text
