"""Administration by several people at once: one wins, the others are told."""

from collections.abc import Callable

import pytest

from tenants.actions import SYSTEM, Rejected, create_team, map_group, save_pool, save_quota
from tenants.models import Pool, Quota
from tests import builders
from tests.integration.jobs.test_submission import in_parallel

pytestmark = [pytest.mark.integration, pytest.mark.django_db(transaction=True)]


def won(work: Callable[[], object]) -> list[bool]:
    """Who of eight at once succeeded; the others were Rejected, or the test fails with what they got."""

    def one(_: int) -> bool:
        try:
            work()
        except Rejected:
            return False
        return True

    return in_parallel(one)


def test_the_same_thing_made_by_eight_at_once_is_there_once() -> None:
    team, pool = builders.team("vision"), builders.pool()
    made: list[Callable[[], object]] = [
        lambda: create_team(actor=SYSTEM, slug="audio", name="Audio"),
        lambda: save_pool(actor=SYSTEM, pool=Pool(slug="b200", name="B200", node_selector={"a": "b"})),
        lambda: save_quota(actor=SYSTEM, quota=Quota(team=team, pool=pool, guarantee=1)),
        lambda: map_group(actor=SYSTEM, group="g", role="lead", team=team),
    ]
    for work in made:
        assert won(work).count(True) == 1
