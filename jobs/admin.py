"""Django's own admin for superusers: read-only, since every change here has an action of its own."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from jobs.models import Job, JobEvent, Node, Pod


class ReadOnly(admin.ModelAdmin[Any]):
    """Look, do not touch."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


for model, columns in (
    (Job, ("id", "name", "team", "pool", "state", "created_at")),
    (JobEvent, ("job", "at", "reason")),
    (Node, ("name", "pool", "is_ready", "seen_at")),
    (Pod, ("namespace", "name", "phase", "node_name")),
):
    admin.site.register(model, type(f"{model.__name__}Admin", (ReadOnly,), {"list_display": columns}))
