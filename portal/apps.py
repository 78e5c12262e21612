"""App configuration."""

from django.apps import AppConfig

from portal import checks  # noqa: F401 (registers them)


class PortalConfig(AppConfig):
    """What is about neither tenants nor jobs."""

    name = "portal"
    default_auto_field = "django.db.models.BigAutoField"
