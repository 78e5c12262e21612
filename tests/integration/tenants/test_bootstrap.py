"""The first steps of an empty installation."""

import pytest
from django.core.management import CommandError, call_command

from tenants.models import GroupMapping, PriorityTier

pytestmark = [pytest.mark.integration, pytest.mark.django_db]


def test_bootstrap_makes_tiers_and_the_first_admins_and_repeats_harmlessly() -> None:
    for _ in range(2):
        call_command("bootstrap", "--admins=Platform/Admins", verbosity=0)
    assert PriorityTier.objects.filter(is_default=True).count() == 1
    assert PriorityTier.objects.count() == 3
    mapping = GroupMapping.objects.get()
    assert (mapping.group, mapping.role, mapping.team) == ("Platform/Admins", "admin", None)


def test_bootstrap_refuses_a_blank_group() -> None:
    with pytest.raises(CommandError, match="group"):
        call_command("bootstrap", "--admins= ", verbosity=0)
