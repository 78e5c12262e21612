"""Every address."""

from django.contrib import admin
from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView
from rest_framework.routers import SimpleRouter

from jobs.api import JobViewSet
from portal import views

router = SimpleRouter(trailing_slash=False)
router.register("jobs", JobViewSet, basename="api-job")

handler400 = "portal.views.bad_request"
urlpatterns = [
    path("healthz", views.healthz, name="healthz"),
    path("readyz", views.readyz, name="readyz"),
    path("events", views.events, name="events"),
    path("freshness", views.freshness, name="freshness"),
    path("api/v1/", include(router.urls)),
    path("api/schema", SpectacularAPIView.as_view(api_version="v1"), name="api-schema"),
    path("admin/", admin.site.urls),
    path("", include("tenants.urls")),
    path("", include("jobs.urls")),
]
