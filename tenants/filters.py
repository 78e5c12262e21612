"""Filters of the lists of this app; unknown values are field errors, never ignored."""

from typing import Any, ClassVar

import django_filters
from django.db.models import Q, QuerySet

from tenants.models import AuditEvent, Outcome


class AuditFilter(django_filters.FilterSet):  # type: ignore[misc]  # the library has no types
    """Search the audit trail."""

    find = django_filters.CharFilter(method="search", label="Person, action or subject", max_length=120)
    outcome = django_filters.ChoiceFilter(choices=Outcome.choices, label="Outcome")

    class Meta:
        model = AuditEvent
        fields: ClassVar = ["find", "outcome"]

    def search(self, events: QuerySet[AuditEvent], name: str, value: Any) -> QuerySet[AuditEvent]:
        """Events whose actor, action or subject contains the text."""
        text = str(value)
        return events.filter(
            Q(actor__icontains=text) | Q(action__icontains=text) | Q(subject__icontains=text)
        )
