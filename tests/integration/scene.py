"""Two teams, jobs and people, as the tests of pages want them."""

from dataclasses import dataclass

from django.contrib.auth import BACKEND_SESSION_KEY
from django.test import Client

from jobs.models import Job
from jobs.state import JobState
from tenants.models import User
from tests import builders


@dataclass(frozen=True)
class Scene:
    """Two teams, a job that runs, one that waits, and one of each kind of person."""

    people: dict[str, User]
    running: Job
    waiting: Job

    def client(self, name: str) -> Client:
        """A browser in which this person is signed in."""
        client = Client()
        client.force_login(self.people[name], backend="django.contrib.auth.backends.ModelBackend")
        assert client.session[BACKEND_SESSION_KEY]
        return client

    def submission(self, **changes: str) -> dict[str, str]:
        """What the New-job form sends."""
        fields = {
            "team": "vision",
            "name": "typed",
            "pool": "h100",
            "tier": "low-priority-dev",
            "image": "registry.example/train:1",
            "command_mode": "argv",
            "command": "python train.py --lr 0.1",
            "workers": "1",
            "gpus": "1",
            "cpu": "4",
            "memory": "16Gi",
            "submission_key": "token-of-the-page",
        }
        return fields | changes


def make_scene() -> Scene:
    """Teams vision and language, a pool of one node, and people of every kind."""
    vision, language = builders.team("vision"), builders.team("language")
    pool, tier = builders.pool(), builders.tier()
    builders.quota(vision, pool)
    people = {
        "admin": builders.person("admin", "admin"),
        "auditor": builders.person("auditor", "auditor"),
        "operator": builders.person("operator", "operator"),
        "developer": builders.person("developer", "developer", vision),
        "viewer": builders.person("viewer", "viewer", vision),
        "stranger": builders.person("stranger", "developer", language),
        "nobody": builders.person("nobody"),
    }
    builders.node("node-1", pool)
    running = builders.job(people["developer"], vision, pool, tier, env={"SECRET_SAUCE": "ketchup"})
    Job.objects.filter(pk=running.pk).update(state=JobState.RUNNING, attempt=1, waiting_code="")
    running.refresh_from_db()
    builders.worker(running, "node-1")
    waiting = builders.job(people["developer"], vision, pool, tier, gpus=8, workers=2)
    Job.objects.filter(pk=waiting.pk).update(
        waiting_code="TeamQuotaInUse",
        waiting_detail={
            "team": "Vision",
            "used": 1,
            "limit": 16,
            "unit": "GPUs",
            "needed": 16,
            "pool": "H100",
        },
    )
    return Scene(people, running, waiting)
