"""Requests that are wrong as such, and answers that go on for longer than the rights of who asked."""

import asyncio
from collections.abc import AsyncGenerator
from importlib import import_module
from typing import Any, cast

import pytest
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.test import Client, RequestFactory

from portal import live
from tenants.login import VERIFIED_AT, has_same_rights
from tenants.models import GroupMapping
from tenants.queries import viewer_for
from tests.integration.scene import Scene

pytestmark = [pytest.mark.integration, pytest.mark.django_db]


@pytest.mark.parametrize("body", ["[" * 5000 + "]" * 5000, '{"a":' * 5000 + "1" + "}" * 5000])
def test_a_body_that_is_nested_too_deeply_is_a_bad_request(scene: Scene, body: str) -> None:
    answer = scene.client("developer").post("/api/v1/jobs", body, content_type="application/json")
    assert answer.status_code == 400
    assert answer.json()["title"]


@pytest.mark.parametrize("version", ["%0a", "%00", "%7f", "2"])
def test_the_description_of_the_api_asks_for_no_version(scene: Scene, version: str) -> None:
    answer = scene.client("developer").get(f"/api/schema?version={version}")
    assert answer.status_code == 200
    assert answer["Content-Disposition"].isprintable()


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/sign-in/"])
def test_a_form_in_a_strange_encoding_is_a_bad_request(path: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.cookies["berth_csrf"] = "a" * 32
    answer = client.post(path, b"x=1", content_type="application/x-www-form-urlencoded; charset=latin-1")
    assert answer.status_code == 400


def request_of(scene: Scene, name: str) -> HttpRequest:
    """A request of somebody with a session, as the middlewares hand it on."""
    client = scene.client(name)
    request = RequestFactory().get("/")
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(client.session.session_key)
    request.user = scene.people[name]
    cast(Any, request).viewer = viewer_for(scene.people[name])
    request.session[VERIFIED_AT] = 2**40
    return request


def test_rights_end_with_the_session_the_group_and_the_user(scene: Scene) -> None:
    request = request_of(scene, "developer")
    assert has_same_rights(request)
    GroupMapping.objects.filter(role="developer", team__slug="vision").delete()
    assert not has_same_rights(request)

    request = request_of(scene, "viewer")
    assert has_same_rights(request)
    request.session.delete(request.session.session_key)
    assert not has_same_rights(request)

    request = request_of(scene, "stranger")
    scene.people["stranger"].is_active = False
    scene.people["stranger"].save()
    assert not has_same_rights(request)


def test_a_token_that_is_none_gives_no_rights(scene: Scene) -> None:
    request = request_of(scene, "viewer")
    request.user = AnonymousUser()
    assert not has_same_rights(request)


def test_a_long_answer_ends_when_it_is_no_longer_allowed() -> None:
    closed = []

    async def events() -> AsyncGenerator[str, None]:
        try:
            for number in range(100):
                yield str(number)
        finally:
            closed.append(True)

    async def read() -> list[str]:
        answers = iter([True, True, False])
        return [event async for event in live.while_allowed(events(), lambda: next(answers), every=0.0)]

    assert asyncio.run(read()) == ["0", "1"]
    assert closed
