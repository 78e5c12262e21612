"""What is kept of the identity provider: old answers serve while it is away, and it is not asked too often."""

import pytest

from tenants.provider import FAILURE_SECONDS, Kept, ProviderError, holds_unstorable_text

pytestmark = pytest.mark.unit


class Source:
    """Something that can be away; counts how often it is asked."""

    def __init__(self) -> None:
        self.is_away = False
        self.asked = 0

    def read(self) -> int:
        self.asked += 1
        if self.is_away:
            raise ProviderError("away")
        return self.asked


def test_a_value_is_read_once_while_it_is_young_enough() -> None:
    source = Source()
    kept = Kept(source.read)
    assert [kept.get(600), kept.get(600), kept.fresh(600)] == [1, 1, 1]


def test_an_old_value_is_read_again() -> None:
    source = Source()
    kept = Kept(source.read)
    assert [kept.get(600), kept.get(-1), kept.fresh(-1)] == [1, 2, 3]


def test_an_old_value_serves_while_the_provider_is_away_unless_a_fresh_one_is_needed() -> None:
    source = Source()
    kept = Kept(source.read)
    kept.get(600)
    source.is_away = True
    assert kept.get(-1) == 1
    with pytest.raises(ProviderError, match="away"):
        kept.fresh(-1)


def test_without_any_value_the_failure_is_told_and_not_every_caller_waits_for_it() -> None:
    source = Source()
    source.is_away = True
    kept = Kept(source.read)
    for _ in range(20):
        with pytest.raises(ProviderError, match="away"):
            kept.get(600)
    assert source.asked == 1


def test_after_a_failure_it_is_asked_again_in_time() -> None:
    source = Source()
    source.is_away = True
    kept = Kept(source.read)
    with pytest.raises(ProviderError):
        kept.get(600)
    source.is_away = False
    kept._failed_at -= FAILURE_SECONDS + 1  # as if that long ago
    assert kept.get(600) == 2


@pytest.mark.parametrize(
    ("text", "is_refused"), [("a\0b", True), ("half \ud800", True), ("😀 Zoë", False), ("a\\b", False)]
)
def test_text_that_cannot_be_stored_is_told_from_text_that_can(text: str, *, is_refused: bool) -> None:
    assert holds_unstorable_text({"groups": [{"name": text}]}) is is_refused
