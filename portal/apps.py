"""App configuration."""

from django.apps import AppConfig


class PortalConfig(AppConfig):
    """What is about neither tenants nor jobs."""

    name = "portal"
    default_auto_field = "django.db.models.BigAutoField"
