"""Fixtures of several files here."""

import pytest

from tests.integration.scene import Scene, make_scene


@pytest.fixture
def scene(db: None) -> Scene:
    """See `make_scene`."""
    return make_scene()
