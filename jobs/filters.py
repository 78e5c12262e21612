"""Filters of job lists, the same for the page and the API."""

from typing import Any, ClassVar

import django_filters
from django.db.models import Q, QuerySet

from jobs.models import Job
from jobs.state import ACTIVE, TERMINAL, JobState

GROUPS = {"active": ACTIVE, "finished": TERMINAL}


class JobFilter(django_filters.FilterSet):  # type: ignore[misc]  # the library has no types
    """Search and narrow jobs; unknown values are field errors, never ignored."""

    q = django_filters.CharFilter(method="search", label="Name or number", max_length=120)
    state = django_filters.MultipleChoiceFilter(choices=[(s, s) for s in JobState], label="State")
    group = django_filters.ChoiceFilter(
        choices=[("active", "Active"), ("finished", "Finished")], method="in_group", label="Group"
    )
    team = django_filters.CharFilter(field_name="team__slug", label="Team", max_length=40)
    pool = django_filters.CharFilter(field_name="pool__slug", label="Pool", max_length=40)
    owner = django_filters.CharFilter(field_name="owner__username", label="Owner", max_length=150)

    class Meta:
        model = Job
        fields: ClassVar = ["q", "state", "group", "team", "pool", "owner"]

    def search(self, jobs: QuerySet[Job], name: str, value: Any) -> QuerySet[Job]:
        """Jobs whose name contains the text, or whose number it is."""
        text = str(value).strip().removeprefix("#")
        found = Q(name__icontains=text)
        if text.isascii() and text.isdecimal() and len(text) < 18:
            found |= Q(pk=int(text))
        return jobs.filter(found)

    def in_group(self, jobs: QuerySet[Job], name: str, value: str) -> QuerySet[Job]:
        """Jobs that still matter, or those that have ended; a state says more and counts alone."""
        if self.data.get("state"):
            return jobs
        return jobs.filter(state__in=GROUPS[value])
