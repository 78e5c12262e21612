"""Pools, quotas, groups, teams and the audit trail in the browser: what is saved, what is refused, where it says so."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tenants.models import AuditEvent, GroupMapping, Quota, Team
from tests import builders
from tests.integration.scene import Scene

pytestmark = [pytest.mark.integration, pytest.mark.django_db]


def test_a_pool_is_saved_or_its_field_named(scene: Scene) -> None:
    client = scene.client("admin")
    fields = {"slug": "b200", "name": "B200", "order_policy": "fair", "selector": "gpu.model=b200"}

    wrong = client.post("/pools/new/", fields | {"selector": "no equals sign"})
    assert wrong.status_code == 422
    assert 'href="#id_selector"' in wrong.content.decode()
    wrong = client.post("/pools/new/", fields | {"gpu_resource": "just gpu"})
    assert 'href="#id_gpu_resource"' in wrong.content.decode()
    assert client.post("/pools/new/", fields).status_code == 302
    assert "B200" in client.get("/pools/").content.decode()


def test_a_quota_changed_by_somebody_else_meanwhile_is_not_overwritten(scene: Scene) -> None:
    client, path = scene.client("admin"), "/quotas/vision/h100/"
    fields = {"guarantee": "4", "borrow_cap": "8", "lend_cap": "4", "version": "1"}

    assert client.post(path, fields).status_code == 302
    late = client.post(path, fields | {"guarantee": "2", "lend_cap": "0"})

    assert late.status_code == 422
    assert "Somebody changed this quota meanwhile" in late.content.decode()
    assert Quota.objects.get(team__slug="vision").guarantee == 4


def test_a_guarantee_above_what_the_nodes_hold_is_refused_at_its_field(scene: Scene) -> None:
    fields = {"guarantee": "9", "borrow_cap": "0", "lend_cap": "0", "version": "1"}

    answer = scene.client("admin").post("/quotas/vision/h100/", fields)

    assert answer.status_code == 422
    assert 'id="id_guarantee_error"' in answer.content.decode()


@pytest.mark.parametrize("path", ["/quotas/", "/pools/", "/tiers/", "/groups/", "/teams/", "/audit/"])
def test_pages_of_the_administration_take_as_many_queries_for_12_teams_as_for_2(
    scene: Scene, path: str
) -> None:
    client, pool = scene.client("admin"), scene.waiting.pool

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get(path).status_code == 200
        return len(captured)

    queries()
    before = queries()
    for number in range(10):
        team = builders.team(f"team-{number}")
        builders.person(f"lead-{number}", "lead", team)
        builders.quota(team, pool, guarantee=0)
    assert queries() == before


def test_a_group_is_mapped_and_taken_away_again(scene: Scene) -> None:
    admin, nobody = scene.client("admin"), scene.people["nobody"]
    nobody.groups_claim, nobody.claim_state = ["Vision/Guests"], "ok"
    nobody.save()
    assert "Vision/Guests" in admin.get("/groups/new/").content.decode()
    fields = {"group": "Vision/Guests", "team": "vision", "role": "viewer"}
    assert admin.post("/groups/new/", fields).status_code == 302
    assert scene.client("nobody").get(f"/jobs/{scene.running.pk}/").status_code == 200

    mapping = GroupMapping.objects.get(group="Vision/Guests")
    path = f"/groups/{mapping.pk}/remove/"
    assert "Vision/Guests" in admin.get(path).content.decode()
    assert scene.client("nobody").get(f"/jobs/{scene.running.pk}/").status_code == 200
    assert admin.post(path, {"confirmed": "1"}).status_code == 302
    assert scene.client("nobody").get(f"/jobs/{scene.running.pk}/").status_code == 404
    assert AuditEvent.objects.filter(action="unmap group", subject="Vision/Guests").exists()


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"group": "g", "team": "vision", "role": "admin"}, "role"),
        ({"group": "g", "team": "", "role": "lead"}, "role"),
        ({"group": "   ", "team": "", "role": "admin"}, "group"),
        ({"group": "g", "team": "elsewhere", "role": "lead"}, "team"),
        ({"group": "a\0b", "team": "", "role": "admin"}, "group"),
    ],
)
def test_a_mapping_that_means_nothing_is_an_error_at_its_field(
    scene: Scene, fields: dict[str, str], field: str
) -> None:
    answer = scene.client("admin").post("/groups/new/", fields)
    assert answer.status_code == 422
    assert f'id="id_{field}_error"' in answer.content.decode()


def test_the_last_group_of_administrators_cannot_be_taken_away(scene: Scene) -> None:
    mapping = GroupMapping.objects.get(team=None, role="admin")
    answer = scene.client("admin").post(f"/groups/{mapping.pk}/remove/", {"confirmed": "1"}, follow=True)
    assert "only group of administrators" in answer.content.decode()
    assert GroupMapping.objects.filter(pk=mapping.pk).exists()


def test_a_team_is_created_or_its_field_named(scene: Scene) -> None:
    admin = scene.client("admin")
    for slug in ("new", "kube-system", "Big", "vision"):
        answer = admin.post("/teams/new/", {"name": "X", "slug": slug})
        assert answer.status_code == 422
        assert 'id="id_slug_error"' in answer.content.decode()
    assert admin.post("/teams/new/", {"name": "Audio", "slug": "audio"}).status_code == 302
    assert Team.objects.get(slug="audio").namespace == "team-audio"
    assert scene.client("developer").post("/teams/new/", {"name": "X", "slug": "x"}).status_code == 403


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"guarantee": "4", "hard_max": "2"}, ("guarantee", "hard_max")),
        ({"guarantee": "2", "lend_cap": "3"}, ("guarantee", "lend_cap")),
    ],
)
def test_a_quota_that_contradicts_itself_says_so_at_both_fields(
    scene: Scene, fields: dict[str, str], wrong: tuple[str, str]
) -> None:
    plain = {"guarantee": "0", "borrow_cap": "0", "lend_cap": "0", "version": "1"}
    answer = scene.client("admin").post("/quotas/vision/h100/", plain | fields)

    text = answer.content.decode()
    assert answer.status_code == 422
    assert "onstraint" not in text
    for field in wrong:
        assert f'id="id_{field}_error"' in text


def test_the_audit_says_what_was_before_and_what_is_now(scene: Scene) -> None:
    client, path = scene.client("admin"), "/quotas/vision/h100/"
    before = Quota.objects.get(team__slug="vision")
    fields = {"guarantee": "4", "borrow_cap": "9", "lend_cap": "0", "version": str(before.version)}
    assert client.post(path, fields).status_code == 302
    event = AuditEvent.objects.filter(action="save quota", actor="admin").latest("id")
    assert event.detail["borrow_cap"] == f"{before.borrow_cap} → 9"
    assert event.detail["guarantee"] == f"{before.guarantee} → 4"

    fields = {"slug": "h100", "name": "H100", "order_policy": "fair", "is_on_hold": "on"}
    pool = scene.waiting.pool
    selector = "\n".join(f"{key}={value}" for key, value in pool.node_selector.items())
    fields |= {"gpu_resource": pool.gpu_resource, "gpu_model": pool.gpu_model, "selector": selector}
    assert client.post("/pools/h100/", fields).status_code == 302
    assert AuditEvent.objects.get(action="change pool").detail["is_on_hold"] == "no → yes"
